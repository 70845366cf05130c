// Runs a program and records, in the order in which they took effect, all that it does to files below one directory.
//
//   trace LOG ROOT PROGRAM [ARGUMENT...]
//
// The record is made from outside, at the system calls themselves (seccomp stops them, ptrace tells what they are), so
// it does not matter which library or which thread makes them. LOG is opened with O_APPEND and each record is one
// writev, so that others can append their own records to it and all of them have one order.
//
// A sync is two records: what was written before SYNC_BEGIN is durable from SYNC_END on. Every other record is made
// after its call has returned and before its caller goes on. The format is drawn in log.rs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, SYNC_BEGIN, SYNC_END, TRUNCATE, RENAME, UNLINK, ALLOCATE, MKDIR };

static const int WATCHED[] = {
    SYS_openat, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_fsync, SYS_fdatasync,
    SYS_ftruncate, SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_fallocate, SYS_mkdirat,
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_rename, SYS_unlink, SYS_rmdir, SYS_mkdir,
#endif
    // Ways to change a file that are not recorded: seeing one below ROOT ends the run, so that none is overlooked.
    SYS_truncate, SYS_sendfile, SYS_copy_file_range, SYS_splice, SYS_linkat,
};
enum { WATCHED_COUNT = sizeof WATCHED / sizeof *WATCHED };

static int journal;
static const char *root;

struct __attribute__((packed)) header { uint32_t kind, path_bytes; uint64_t a, b; uint32_t mode, data_bytes; };

// One call under way in one thread.
struct call { pid_t thread; uint64_t nr, args[6]; off_t position; char path[4096], other[4096]; };
static struct call calls[4096];

static void die(const char *what) { fprintf(stderr, "trace: %s: %s\n", what, strerror(errno)); _exit(125); }

static void record(int kind, const char *path, uint64_t a, uint64_t b, int mode, const void *data, size_t data_bytes) {
    struct header head = { kind, strlen(path), a, b, mode, data_bytes };
    struct iovec parts[] = { { &head, sizeof head }, { (void *)path, head.path_bytes }, { (void *)data, data_bytes } };
    if (writev(journal, parts, 3) != (ssize_t)(sizeof head + head.path_bytes + data_bytes)) die("the log");
}

static int below_root(const char *path) {
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static void path_of_fd(pid_t thread, int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/%d/cwd" : "/proc/%d/fd/%d", thread, fd);
    ssize_t n = readlink(link, out, 4095);
    out[n < 0 ? 0 : n] = 0;
}

static void read_text(pid_t thread, uint64_t address, char *out) {
    size_t n = 0;
    while (n < 4095) { // to the end of a page each time: what follows the text may not be mapped
        size_t step = 4096 - (address + n) % 4096;
        if (step > 4095 - n) step = 4095 - n;
        struct iovec to = { out + n, step }, from = { (void *)(address + n), step };
        ssize_t got = process_vm_readv(thread, &to, 1, &from, 1, 0);
        if (got <= 0) break;
        if (memchr(out + n, 0, got)) return;
        n += got;
    }
    out[n] = 0;
}

static void path_at(pid_t thread, int dir, uint64_t address, char *out) {
    char text[4096], base[4096];
    read_text(thread, address, text);
    if (text[0] == '/') { strcpy(out, text); return; }
    path_of_fd(thread, dir, base);
    if (snprintf(out, 4096, "%s/%s", base, text) >= 4096) die("a path is too long");
}

static struct call *call_of(pid_t thread) {
    struct call *empty = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].thread == thread) return &calls[i];
        if (!calls[i].thread && !empty) empty = &calls[i];
    }
    if (!empty) die("too many threads");
    empty->thread = thread;
    return empty;
}

// The offset at which a plain write will land; for O_APPEND the file's end.
static off_t position_of(pid_t thread, int fd) {
    char name[64], line[128];
    long long position = 0; unsigned flags = 0;
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", thread, fd);
    FILE *file = fopen(name, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) { sscanf(line, "pos: %lld", &position); sscanf(line, "flags: %o", &flags); }
    fclose(file);
    if (flags & O_APPEND) {
        snprintf(name, sizeof name, "/proc/%d/fd/%d", thread, fd);
        int own = open(name, O_RDONLY);
        if (own < 0) die("an appended file");
        position = lseek(own, 0, SEEK_END);
        close(own);
    }
    return position;
}

static uint64_t sync_number(const struct call *call) { return (uint64_t)call->thread; } // one sync at a time a thread

// Before the call: what it is about, as long as that can still be told. Returns whether it concerns us.
static int entered(struct call *call) {
    pid_t thread = call->thread;
    uint64_t *args = call->args;
    call->other[0] = 0;
    switch (call->nr) {
    case SYS_openat: path_at(thread, (int)args[0], args[1], call->path); break;
    case SYS_mkdirat: case SYS_unlinkat: path_at(thread, (int)args[0], args[1], call->path); break;
    case SYS_renameat: case SYS_renameat2:
        path_at(thread, (int)args[0], args[1], call->path);
        path_at(thread, (int)args[2], args[3], call->other);
        return below_root(call->path) || below_root(call->other);
#ifdef SYS_open
    case SYS_open: case SYS_creat: case SYS_unlink: case SYS_rmdir: case SYS_mkdir:
        path_at(thread, AT_FDCWD, args[0], call->path); break;
    case SYS_rename:
        path_at(thread, AT_FDCWD, args[0], call->path);
        path_at(thread, AT_FDCWD, args[1], call->other);
        return below_root(call->path) || below_root(call->other);
#endif
    case SYS_truncate: path_at(thread, AT_FDCWD, args[0], call->path); break;
    case SYS_linkat: path_at(thread, (int)args[2], args[3], call->path); break;
    case SYS_copy_file_range: case SYS_splice: path_of_fd(thread, (int)args[2], call->path); break;
    default: path_of_fd(thread, (int)args[0], call->path);
    }
    if (!below_root(call->path)) return 0;
    switch (call->nr) {
    case SYS_write: case SYS_writev: call->position = position_of(thread, (int)args[0]); break;
    case SYS_pwrite64: case SYS_pwritev: case SYS_pwritev2: call->position = (off_t)args[3]; break;
    case SYS_fsync: case SYS_fdatasync: record(SYNC_BEGIN, call->path, sync_number(call), 0, 0, NULL, 0); break;
    case SYS_truncate: case SYS_sendfile: case SYS_copy_file_range: case SYS_splice: case SYS_linkat:
        errno = ENOSYS; die("a call that is not recorded");
    }
    return 1;
}

static void written(const struct call *call, size_t bytes, int vectored) {
    char *data = malloc(bytes + 1);
    struct iovec to = { data, bytes }, from[1024] = { { (void *)call->args[1], bytes } };
    unsigned long parts = 1;
    if (vectored) {
        parts = call->args[2] < 1024 ? call->args[2] : 1024;
        struct iovec list = { from, parts * sizeof *from }, at = { (void *)call->args[1], parts * sizeof *from };
        if (process_vm_readv(call->thread, &list, 1, &at, 1, 0) != (ssize_t)list.iov_len) die("a vector");
    }
    if (process_vm_readv(call->thread, &to, 1, from, parts, 0) != (ssize_t)bytes) die("written data");
    record(WRITE, call->path, (uint64_t)call->position, bytes, 0, data, bytes);
    free(data);
}

// After the call, with what it returned.
static void left(const struct call *call, int64_t result) {
    const uint64_t *args = call->args;
    if (result < 0) return; // it changed nothing; a failed sync never ends
    switch (call->nr) {
#ifdef SYS_open
    case SYS_open: if (args[1] & (O_CREAT | O_TRUNC)) record(CREATE, call->path, args[1] & O_TRUNC, 0, 0, NULL, 0); break;
    case SYS_creat: record(CREATE, call->path, O_TRUNC, 0, 0, NULL, 0); break;
    case SYS_rename: record(RENAME, call->path, 0, 0, 0, call->other, strlen(call->other)); break;
    case SYS_unlink: case SYS_rmdir: record(UNLINK, call->path, 0, 0, 0, NULL, 0); break;
    case SYS_mkdir: record(MKDIR, call->path, 0, 0, 0, NULL, 0); break;
#endif
    case SYS_openat: if (args[2] & (O_CREAT | O_TRUNC)) record(CREATE, call->path, args[2] & O_TRUNC, 0, 0, NULL, 0); break;
    case SYS_renameat: case SYS_renameat2:
        record(RENAME, call->path, 0, 0, 0, call->other, strlen(call->other)); break;
    case SYS_unlinkat: record(UNLINK, call->path, 0, 0, 0, NULL, 0); break;
    case SYS_mkdirat: record(MKDIR, call->path, 0, 0, 0, NULL, 0); break;
    case SYS_write: case SYS_pwrite64: written(call, (size_t)result, 0); break;
    case SYS_writev: case SYS_pwritev: case SYS_pwritev2: written(call, (size_t)result, 1); break;
    case SYS_fsync: case SYS_fdatasync: record(SYNC_END, call->path, sync_number(call), 0, 0, NULL, 0); break;
    case SYS_ftruncate: record(TRUNCATE, call->path, args[1], 0, 0, NULL, 0); break;
    case SYS_fallocate: record(ALLOCATE, call->path, args[2], args[3], (int)args[1], NULL, 0); break;
    }
}

// The child: asks to be traced, lets the watched calls stop, becomes the program.
static void become(char **command) {
    struct sock_filter filter[WATCHED_COUNT + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < WATCHED_COUNT; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WATCHED[i], WATCHED_COUNT - i, 0);
    filter[WATCHED_COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[WATCHED_COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = { WATCHED_COUNT + 3, filter };
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) die("ptrace is not permitted");
    raise(SIGSTOP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
    execv(command[0], command);
    die(command[0]);
}

// What a stopped thread stopped for; returns how to let it go on and, in `signal`, with which signal.
static int stopped(pid_t thread, int status, int *signal) {
    struct __ptrace_syscall_info info; // as glibc spells it
    *signal = 0;
    if (status >> 16 == PTRACE_EVENT_SECCOMP) {
        struct call *call = call_of(thread);
        if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return PTRACE_CONT;
        call->nr = info.seccomp.nr;
        memcpy(call->args, info.seccomp.args, sizeof call->args);
        if (entered(call)) return PTRACE_SYSCALL; // stop again at its return
        call->thread = 0;
    } else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        struct call *call = call_of(thread);
        if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_EXIT)
            left(call, info.exit.rval);
        call->thread = 0;
    } else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP) {
        *signal = WSTOPSIG(status); // SIGSTOP is how new threads report; all else is the program's own
    }
    return PTRACE_CONT;
}

int main(int count, char **arguments) {
    if (count < 4) { fprintf(stderr, "trace LOG ROOT PROGRAM [ARGUMENT...]\n"); return 2; }
    journal = open(arguments[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    root = arguments[2];
    if (journal < 0) die(arguments[1]);
    pid_t child = fork();
    if (child == 0) become(arguments + 3);
    int status, signal;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) die("ptrace is not permitted");
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK
        | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options)) die("ptrace options");
    ptrace(PTRACE_CONT, child, 0, 0);
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) return 0;
        if (WIFSTOPPED(status)) {
            int how = stopped(thread, status, &signal);
            ptrace(how, thread, 0, signal); // fails only for a thread that was killed meanwhile
        } else if (thread == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
}
