#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SPRAG_H */
