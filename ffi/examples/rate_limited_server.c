/*
 * A server that limits the rate of each of its clients: three requests a minute. A client that asks more often is told
 * when to come again. The requests come from a second thread, so that the program shows itself.
 *
 *     cc -std=c11 rate_limited_server.c -lsprag -lpthread && ./a.out
 */

#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sprag.h>

/* Ends the program if a call of the library failed. */
static void must(sprag_status status, sprag_error *error)
{
    if (status < 0) {
        fprintf(stderr, "%s\n", sprag_error_message(error));
        sprag_error_free(error);
        exit(1);
    }
}

/* Ends the program if a call of the system failed. */
static int must_system(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

static void write_all(int to, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t written = write(to, text, left);
        if (written <= 0)
            return;
        text += written;
        left -= (size_t)written;
    }
}

/* Reads up to the empty line that ends a request or an answer, as text. */
static void read_head(int from, char *head, size_t head_size)
{
    size_t len = 0;
    head[0] = '\0';
    while (len + 1 < head_size && strstr(head, "\r\n\r\n") == NULL) {
        ssize_t got = read(from, head + len, head_size - 1 - len);
        if (got <= 0)
            return;
        len += (size_t)got;
        head[len] = '\0';
    }
}

/* The value of a header line, and how long it is; NULL if there is none. */
static const char *header(const char *head, const char *name, size_t *len)
{
    const char *at = strstr(head, name);
    if (at == NULL)
        return NULL;
    at += strlen(name);
    *len = strcspn(at, "\r\n");
    return at;
}

/* Seconds of a Retry-After: rounded up, since who comes early is refused again. */
static unsigned long long seconds_up(uint64_t ns)
{
    return ns / SPRAG_SECOND + (ns % SPRAG_SECOND != 0);
}

/* Answers one request. */
static void answer(int connection, const sprag_limiter *limiter)
{
    char request[1024], refusal[128];
    size_t client_len;

    read_head(connection, request, sizeof request);
    const char *client = header(request, "\r\nX-Client: ", &client_len);
    if (client == NULL || client_len == 0) {
        write_all(connection, "HTTP/1.1 400 Bad Request\r\n\r\n");
        return;
    }

    sprag_decision decision;
    sprag_error *error = NULL;
    sprag_status checked = sprag_limiter_check(limiter, client, client_len, 1, &decision, &error);
    must(checked, error);
    if (checked == SPRAG_OK) {
        write_all(connection, "HTTP/1.1 200 OK\r\n\r\n");
        return;
    }
    snprintf(refusal, sizeof refusal, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: %llu\r\n\r\n",
             seconds_up(sprag_decision_retry_after_ns(&decision)));
    write_all(connection, refusal);
}

/* The server: until nobody can connect any more. */
static void serve(int listener, const sprag_limiter *limiter)
{
    int connection;
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        answer(connection, limiter);
        close(connection);
    }
}

/* Asks once, and prints the answer. */
static void ask(const struct sockaddr_in *server, const char *client)
{
    char request[128], head[1024];
    size_t wait_len;
    int connection = must_system(socket(AF_INET, SOCK_STREAM, 0), "socket");

    must_system(connect(connection, (const struct sockaddr *)server, sizeof *server), "connect");
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nX-Client: %s\r\n\r\n", client);
    write_all(connection, request);
    read_head(connection, head, sizeof head);
    close(connection);

    const char *wait = header(head, "\r\nRetry-After: ", &wait_len);
    printf("%s: %.3s", client, head + strlen("HTTP/1.1 "));
    if (wait != NULL) {
        /* Three a minute: one is free again after 20 s at most. */
        long seconds = strtol(wait, NULL, 10);
        printf(", %s", seconds >= 1 && seconds <= 20 ? "again within 20 s" : wait);
    }
    printf("\n");
}

static void *clients(void *context)
{
    int listener = *(int *)context;
    struct sockaddr_in server;
    socklen_t server_len = sizeof server;

    must_system(getsockname(listener, (struct sockaddr *)&server, &server_len), "getsockname");
    for (int i = 0; i < 4; i++)
        ask(&server, "ann");
    ask(&server, "bob");
    /* The server's next accept fails, and it ends. */
    shutdown(listener, SHUT_RDWR);
    return NULL;
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = must_system(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must_system(bind(listener, (const struct sockaddr *)&address, sizeof address), "bind");
    must_system(listen(listener, 16), "listen");

    /* "shm:my-server" would share the limits with other processes: see prefork_workers.c. */
    sprag_space *space = NULL;
    sprag_limiter *limiter = NULL;
    sprag_error *error = NULL;
    must(sprag_space_open("mem:", NULL, &space, &error), error);
    must(sprag_limiter_open(space, "requests", strlen("requests"), "3/minute", 0, &limiter, &error), error);

    pthread_t thread;
    if (pthread_create(&thread, NULL, clients, &listener) != 0)
        return 1;
    serve(listener, limiter);
    pthread_join(thread, NULL);

    close(listener);
    sprag_limiter_close(limiter);
    sprag_space_close(space);
    return 0;
}
