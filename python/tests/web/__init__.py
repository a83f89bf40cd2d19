"""Tests of `sprag.web`: of each part by itself, of both middlewares, and under real servers."""
