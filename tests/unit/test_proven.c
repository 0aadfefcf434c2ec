/* Files that are held while they are hashed and loaded, and loading what is held: whatever is put in its
 * place on disk, those bytes run or none. */
#include "failing_memory.h"
#include "fakes.h"
#include "root.h"

#include "base/ours.h"
#include "kernel/library.h"
#include "kernel/posix/entrance.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void copy_file(const char *to, const char *from)
{
    char command[9000];
    snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
    ck_assert_int_eq(system(command), 0);
}

/* ROOT/name. Static. */
static const char *at(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static int count_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static khub__held hold(const char *path)
{
    khub__held held;
    khub_error err = {0};
    ck_khub_ok(khub__hold(&held, path, &err), &err);
    return held;
}

/* A build in ROOT with the library of the fake kernel `name`, and what is beside it there, held. */
static void prove(khub__proven *proven, const char *library)
{
    khub_error err = {0};
    DIR *dir = opendir(root);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!strstr(entry->d_name, ".so")) continue;
        khub__held held = hold(at(entry->d_name));
        if (!khub__held_still(&held)) ck_khub_ok(khub__held_copy(&held, at(entry->d_name), &err), &err);
        ck_khub_ok(khub__proven_add(proven, entry->d_name, "c0ffee", &held, &err), &err);
        ck_assert_int_eq(held.fd, -1);
    }
    closedir(dir);
    ck_assert_ptr_nonnull(khub__proven_find(proven, library));
}

static void take_build(const char *name)
{
    char command[9000];
    snprintf(command, sizeof(command), "cp '%s'/*.so '%s'", fake_file(name, NULL), root);
    ck_assert_int_eq(system(command), 0);
}

static int64_t ask(const khub__library *library, const char *name)
{
    const khub__library_function *found = khub__library_find(library, name);
    ck_assert_ptr_nonnull(found);
    khub_function f = {found->function.call, NULL};
    khub_error err = {0};
    khub_value result;
    ck_khub_ok(khub_function_call(&f, NULL, 0, &result, &err), &err);
    return result.as.i64;
}

static const char good[] = "_good_cpu_fa4e000.so";

START_TEST(nobody_writes_to_what_is_held)
{
    make_root();
    put("/file", "content");
    khub__held held = hold(at("file"));
    ck_assert(held.leased && khub__held_still(&held) && !held.others && held.size == 7);
    ck_assert_int_eq(fcntl(held.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_lt(open(at("file"), O_WRONLY | O_NONBLOCK), 0); /* and no signal ends us: SIGIO would */
    ck_assert_int_eq(errno, EWOULDBLOCK);
    ck_assert_int_eq(khub__held_still(&held), 0); /* somebody asked: it isn't held for long any more */
    khub__held_drop(&held);
    khub__held_drop(&held);
    int writer = open(at("file"), O_WRONLY | O_NONBLOCK);
    ck_assert_int_ge(writer, 0);
    held = hold(at("file"));
    ck_assert(!held.leased && !khub__held_still(&held));
    khub_error err = {0};
    ck_khub_ok(khub__held_copy(&held, at("file"), &err), &err);
    ck_assert_int_eq(write(writer, "CONTENT", 7), 7);
    char read_back[8] = "";
    ck_assert(held.copied && khub__held_still(&held) && !khub__held_settled(&held));
    ck_assert_int_eq(khub__held_read(&held, read_back, 8, 0), 7);
    ck_assert_str_eq(read_back, "content");
    ck_assert_int_lt(pwrite(held.fd, "x", 1, 0), 0);
    ck_assert_int_lt(ftruncate(held.fd, 0), 0);
    close(writer);
    khub__held_drop(&held);
    remove_root();
}
END_TEST

/* A process that was forked while the file was held doesn't keep others from writing. */
START_TEST(a_lease_ends_for_children_too)
{
    make_root();
    put("/file", "content");
    khub__held held = hold(at("file"));
    int to[2];
    ck_assert_int_eq(pipe(to), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(to[1]);
        _exit(read(to[0], &byte, 1) == 0 ? 0 : 1);
    }
    khub__held_drop(&held);
    int writer = open(at("file"), O_WRONLY | O_NONBLOCK);
    ck_assert_int_ge(writer, 0);
    close(writer);
    close(to[1]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    remove_root();
}
END_TEST

START_TEST(what_is_no_file)
{
    make_root();
    khub__held held;
    khub_error err = {0};
    int before = count_fds();
    ck_assert_int_eq(mkfifo(at("pipe"), 0666), 0);
    ck_khub_fails(khub__hold(&held, at("pipe"), &err), &err, KHUB_E_FORMAT, "is a device or pipe");
    ck_khub_fails(khub__hold(&held, root, &err), &err, KHUB_E_FORMAT, "is a directory");
    ck_khub_fails(khub__hold(&held, at("none"), &err), &err, KHUB_E_NOTFOUND, "none");
    ck_assert_int_eq(count_fds(), before);
    remove_root();
}
END_TEST

START_TEST(identities)
{
    make_root();
    put("/file", "content");
    khub__identity before, now;
    int others;
    struct timespec times[2];
    struct stat st;
    ck_assert_int_eq(khub__identify(&before, &others, at("file"), 0), 0);
    ck_assert_int_eq(others, 0);
    ck_assert_int_eq(stat(at("file"), &st), 0);
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    khub__held held = hold(at("file"));
    ck_assert(khub__same_identity(&held.file, &before));
    ck_assert_int_eq(khub__held_settled(&held), 0); /* written in this very tick, for all that can be told */
    usleep(60000);
    ck_assert_int_eq(khub__held_settled(&held), 1);
    khub__held_drop(&held);
    int fd = open(at("file"), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "C", 1, 0), 1);
    close(fd);
    ck_assert_int_eq(utimensat(AT_FDCWD, at("file"), times, 0), 0); /* as a forger would */
    ck_assert_int_eq(khub__identify(&now, &others, at("file"), 0), 0);
    ck_assert(!khub__same_identity(&now, &before));
    ck_assert_int_eq(khub__identify(&now, &others, root, 0), -1);
    remove_root();
}
END_TEST

START_TEST(who_may_write)
{
    uint32_t me = geteuid();
    make_root();
    put("/file", "content");
    const char *file = at("file");
    ck_assert(khub__is_ours(me, 0, 0100644, file, -1) && khub__is_ours(0, 0, 0100755, file, -1));
    ck_assert(khub__is_ours(me, 12345, 0100644, file, -1));
    ck_assert(!khub__is_ours(me + 1, 0, 0100644, file, -1));
    ck_assert(!khub__is_ours(me, 0, 0100646, file, -1));
    ck_assert(!khub__is_ours(me, 12345, 0100664, file, -1)); /* nobody's own group */
    ck_assert(!khub__is_ours(me, 0, 0100664, file, -1));     /* root's isn't his own */
    remove_root();
}
END_TEST

/* "user::rw-, user:12345:rw-, group::r--, mask::rw-, other::r--", as Linux keeps it: the version, then what
 * it is about, the bits and the number of each. */
static void let_another_write(const char *path)
{
    static const unsigned char list[] = {
        2,    0, 0, 0,                         /* the version */
        1,    0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* the owner */
        2,    0, 6, 0, 0x39, 0x30, 0,    0,    /* user 12345 */
        4,    0, 4, 0, 0xff, 0xff, 0xff, 0xff, /* the group */
        0x10, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* the mask */
        0x20, 0, 4, 0, 0xff, 0xff, 0xff, 0xff, /* the others */
    };
    ck_assert_msg(setxattr(path, "system.posix_acl_access", list, sizeof(list), 0) == 0,
                  "%s: the file system must have access lists", path);
}

/* With a list the group's bits are the most that anybody in it may. */
static int lists_count(void)
{
    struct stat st;
    khub__identity id;
    int others = -1;
    const char *file = at("file");
    if (chmod(file, 0664) != 0 || stat(file, &st) != 0) return 1;
    if (!khub__is_ours(st.st_uid, st.st_gid, st.st_mode, file, -1)) return 2; /* his own group */
    if (khub__identify(&id, &others, file, 0) != 0 || others) return 3;
    let_another_write(file);
    if (stat(file, &st) != 0 || (st.st_mode & 0777) != 0664) return 4; /* it looks the same */
    if (khub__is_ours(st.st_uid, st.st_gid, st.st_mode, file, -1)) return 5;
    if (khub__identify(&id, &others, file, 0) != 0 || !others) return 6;
    khub__held held = hold(file);
    if (!held.others) return 7;
    khub__held_drop(&held);
    if (chmod(file, 0644) != 0 || stat(file, &st) != 0) return 8; /* that takes it from the mask */
    return khub__is_ours(st.st_uid, st.st_gid, st.st_mode, file, -1) ? 0 : 9;
}

START_TEST(access_lists)
{
    enum { DAEMON = 1 }; /* a user that every Linux has, with a group of his own */
    ck_assert_msg(geteuid() == 0, "this test needs root, to be two users");
    make_root();
    put("/file", "content");
    ck_assert(chown(root, DAEMON, DAEMON) == 0 && chown(at("file"), DAEMON, DAEMON) == 0);
    pid_t child = fork();
    if (child == 0) {
        int became = setgroups(0, NULL) == 0 && setgid(DAEMON) == 0 && setuid(DAEMON) == 0;
        _exit(became ? lists_count() : 99);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    remove_root();
}
END_TEST

START_TEST(primary_groups)
{
    make_root();
    put("/passwd", "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n"
                   "annabel:x:1001:1001::/:\nbob:x:1002:1001::/:\nodd\n");
    const char *passwd = at("passwd");
    ck_assert(khub__is_primary_group_of_one(passwd, "ann", 1000));
    ck_assert(khub__is_primary_group_of_one(passwd, "ann", 4)); /* nobody's */
    ck_assert(!khub__is_primary_group_of_one(passwd, "annabel", 1001));
    ck_assert(!khub__is_primary_group_of_one(passwd, "annabel", 1000)); /* ann's */
    ck_assert(!khub__is_primary_group_of_one(at("none"), "ann", 1000));
    remove_root();
}
END_TEST

/* What the loader and dladdr call a function's file. Static. */
static const char *file_of(const khub__library *library, const char *function)
{
    Dl_info info = {0};
    void *code;
    memcpy(&code, &khub__library_find(library, function)->function.call, sizeof(code));
    ck_assert_int_ne(dladdr(code, &info), 0);
    return info.dli_fname;
}

START_TEST(the_held_bytes_are_loaded)
{
    khub_kernel_close(fake_get("good")); /* brings libtvm_ffi */
    make_root();
    khub__proven proven = {0};
    const khub__library *library, *again;
    khub_error err = {0};
    take_build("good");
    prove(&proven, good);
    copy_file(at("evil"), fake_library("crash_on_load"));
    ck_assert_int_eq(rename(at("evil"), at(good)), 0); /* swapped after it was proven */
    int before = count_fds();
    ck_khub_ok(khub__library_open(&library, at(good), NULL, &proven, &err), &err);
    ck_assert_int_eq(ask(library, "forty_two"), 42);
    ck_assert_str_eq(file_of(library, "forty_two"), at(good));
    void *handle = dlopen(at(good), RTLD_NOLOAD | RTLD_NOW); /* the loader knows it by that name */
    ck_assert_ptr_nonnull(handle);
    dlclose(handle);
    ck_assert_int_eq(count_fds(), before);
    ck_khub_ok(khub__library_open(&again, at(good), NULL, &proven, &err), &err);
    ck_assert_ptr_eq(again, library);
    strcpy(proven.files[0].content, "decaf");
    ck_khub_fails(khub__library_open(&again, at(good), NULL, &proven, &err), &err, KHUB_E_LOAD,
                  "was replaced after");
    ck_khub_fails(khub__library_open(&again, at("evil.so"), NULL, &proven, &err), &err, KHUB_E_UNTRUSTED,
                  "evil.so: isn't a file of its build whose content was proven");
    khub__proven_drop(&proven);
    remove_root();
}
END_TEST

/* The same number of an open file, and so the same path beneath /proc, for one library after the other. */
START_TEST(a_number_that_is_used_again)
{
    khub_kernel_close(fake_get("good"));
    make_root();
    for (int i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%d.so", i);
        copy_file(at(name), fake_library(i % 2 ? "twin_two" : "twin_one"));
        khub__proven proven = {0};
        khub__held held = hold(at(name));
        const khub__library *library;
        khub_error err = {0};
        ck_khub_ok(khub__proven_add(&proven, name, "c0ffee", &held, &err), &err);
        ck_khub_ok(khub__library_open(&library, at(name), NULL, &proven, &err), &err);
        ck_assert_int_eq(ask(library, "ask_helper"), i % 2 ? 2 : 1);
        khub__proven_drop(&proven);
    }
    remove_root();
}
END_TEST

START_TEST(somebody_writes_at_the_last_moment)
{
    make_root();
    khub__proven proven = {0};
    const khub__library *library;
    khub_error err = {0};
    take_build("crash_on_load");
    prove(&proven, "_crash_on_load_cpu_fa4e000.so");
    ck_assert_int_lt(open(at("_crash_on_load_cpu_fa4e000.so"), O_WRONLY | O_NONBLOCK), 0);
    ck_khub_fails(khub__library_open(&library, at("_crash_on_load_cpu_fa4e000.so"), NULL, &proven, &err),
                  &err, KHUB_E_UNTRUSTED, "is being written to while it is loaded");
    khub__proven_drop(&proven);
    remove_root();
}
END_TEST

static int count_entries(const char *dir)
{
    int count = 0;
    DIR *d = opendir(dir);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(d);
    return count;
}

static const char with_sibling[] = "_with_sibling_cpu_fa4e000.so";

START_TEST(siblings_are_the_held_ones)
{
    make_root();
    mkdir(at("run"), 0700);
    setenv("XDG_RUNTIME_DIR", at("run"), 1);
    khub__proven proven = {0};
    const khub__library *library;
    khub_error err = {0};
    take_build("with_sibling");
    prove(&proven, with_sibling);
    char other[4096];
    snprintf(other, sizeof(other), "%s", fake_file("with_other_sibling", "libfakesibling.so"));
    copy_file(at("evil"), other); /* it answers 18 */
    ck_assert_int_eq(rename(at("evil"), at("libfakesibling.so")), 0);
    int before = count_fds();
    ck_khub_ok(khub__library_open(&library, at(with_sibling), NULL, &proven, &err), &err);
    ck_assert_int_eq(ask(library, "ask_sibling"), 17);
    ck_assert_int_eq(count_fds(), before);
    void *handle = dlopen("libfakesibling.so", RTLD_NOLOAD | RTLD_NOW);
    struct link_map *map;
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    ck_assert_str_eq(map->l_name, at("libfakesibling.so"));
    dlclose(handle);
    khub__proven_drop(&proven);
    ck_assert_int_eq(count_entries(at("run")),
                     0); /* while the process goes on: however it ends, nothing is left */
    remove_root();
}
END_TEST

static pid_t stopped_child(const khub__proven *proven, int loading)
{
    khub__entrance entrance;
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (loading && khub__entrance_open(&entrance, proven, root, with_sibling, 0, NULL) != KHUB_OK)
            _exit(1);
        raise(SIGSTOP);
        if (khub__entrance_open(&entrance, proven, root, with_sibling, 0, NULL) != KHUB_OK) _exit(1);
        khub__entrance_close(&entrance, NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
    ck_assert_msg(WIFSTOPPED(status), "%#x", (unsigned)status);
    return child;
}

/* A constructor may end the process, or a signal does. Then the next one that loads something removes it, but
 * not what another is loading through just now. */
START_TEST(what_is_left_of_loading)
{
    make_root();
    mkdir(at("run"), 0700);
    setenv("XDG_RUNTIME_DIR", at("run"), 1);
    take_build("with_sibling");
    put("/run/khub-load-0123456789abcdef0", "another's"); /* nearly such a name */
    khub__proven proven = {0};
    khub__entrance entrance;
    khub_error err = {0};
    int status;
    prove(&proven, with_sibling);
    pid_t next = stopped_child(&proven, 0), killed = stopped_child(&proven, 1);
    ck_assert_int_eq(count_entries(at("run")), 2);
    ck_khub_ok(khub__entrance_open(&entrance, &proven, root, with_sibling, 0, &err), &err);
    ck_assert_int_eq(count_entries(at("run")), 3);
    khub__entrance_close(&entrance, NULL);
    ck_assert_int_eq(count_entries(at("run")), 2);
    kill(killed, SIGKILL);
    ck_assert_int_eq(waitpid(killed, &status, 0), killed);
    ck_assert_int_eq(count_entries(at("run")), 2);
    kill(next, SIGCONT);
    ck_assert_int_eq(waitpid(next, &status, 0), next);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    ck_assert_int_eq(count_entries(at("run")), 1);
    khub__proven_drop(&proven);
    remove_root();
}
END_TEST

START_TEST(words_name_the_real_files)
{
    khub_kernel_close(fake_get("good"));
    make_root();
    khub__proven proven = {0};
    const khub__library *library;
    khub_error err = {0};
    take_build("needs_nobody");
    prove(&proven, "_needs_nobody_cpu_fa4e000.so");
    ck_khub_fails(khub__library_open(&library, at("_needs_nobody_cpu_fa4e000.so"), NULL, &proven, &err), &err,
                  KHUB_E_LOAD, at("_needs_nobody_cpu_fa4e000.so: undefined symbol nobody_has_this"));
    khub__proven_drop(&proven);
    remove_root();
    make_root();
    take_build("with_needy_sibling");
    prove(&proven, "_with_needy_sibling_cpu_fa4e000.so");
    memset(&err, 0, sizeof(err));
    ck_assert_int_eq(
        khub__library_open(&library, at("_with_needy_sibling_cpu_fa4e000.so"), NULL, &proven, &err),
        KHUB_E_LOAD);
    ck_assert_msg(strstr(err.message, at("libfakeneedy.so")) && !strstr(err.message, "/khub-1"), "%s",
                  err.message);
    khub__proven_drop(&proven);
    remove_root();
}
END_TEST

/* What is proven doesn't look for what isn't: neither where the program is run, nor above its build. */
START_TEST(only_proven_libraries_are_found)
{
    make_root();
    khub__proven proven = {0};
    const khub__library *library;
    khub_error err = {0};
    take_build("with_loose_sibling");
    prove(&proven, "_with_loose_sibling_cpu_fa4e000.so");
    ck_khub_fails(khub__library_open(&library, at("_with_loose_sibling_cpu_fa4e000.so"), NULL, &proven, &err),
                  &err, KHUB_E_LOAD,
                  "its search path has \"lib\", which is looked for in the current directory");
    khub__proven_drop(&proven);
    remove_root();
    make_root();
    take_build("with_sibling"); /* the sibling is there, but isn't proven */
    khub__held held = hold(at(with_sibling));
    ck_khub_ok(khub__proven_add(&proven, with_sibling, "c0ffee", &held, &err), &err);
    ck_khub_fails(khub__library_open(&library, at(with_sibling), NULL, &proven, &err), &err, KHUB_E_LOAD,
                  "needs libfakesibling.so");
    khub__proven_drop(&proven);
    remove_root();
}
END_TEST

static int prove_and_open(void *user, khub_error *err)
{
    const char *name = user;
    khub__proven proven = {0};
    const khub__library *library;
    const char *const files[] = {with_sibling, "libfakesibling.so"};
    int rc = KHUB_OK, before = count_fds();
    for (size_t i = 0; rc == KHUB_OK && i < 2; i++) {
        khub__held held;
        rc = khub__hold(&held, at(files[i]), err);
        if (rc != KHUB_OK) break;
        if (i == 0) rc = khub__held_copy(&held, at(files[i]), err);
        if (rc == KHUB_OK) rc = khub__proven_add(&proven, files[i], "c0ffee", &held, err);
        if (rc != KHUB_OK) khub__held_drop(&held);
    }
    if (rc == KHUB_OK) rc = khub__library_open(&library, at(name), NULL, &proven, err);
    khub__proven_drop(&proven);
    return count_fds() == before ? rc : KHUB_E_INVAL;
}

START_TEST(each_allocation_fails)
{
    make_root();
    take_build("with_sibling");
    fm_fail_each_fresh(prove_and_open, (void *)(uintptr_t)with_sibling);
    remove_root();
}
END_TEST

static void *open_in_thread(void *user)
{
    khub__proven proven = {0};
    const khub__library *library = NULL;
    prove(&proven, with_sibling);
    int rc = khub__library_open(&library, user, NULL, &proven, NULL);
    khub__proven_drop(&proven);
    return rc == KHUB_OK ? (void *)(uintptr_t)library : NULL;
}

START_TEST(eight_threads)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    void *libraries[THREADS];
    make_root();
    take_build("with_sibling");
    char path[512];
    snprintf(path, sizeof(path), "%s", at(with_sibling));
    int before = count_fds();
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_in_thread, path), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], &libraries[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_ptr_nonnull(libraries[i]);
        ck_assert_ptr_eq(libraries[i], libraries[0]);
    }
    ck_assert_int_eq(count_fds(), before);
    remove_root();
}
END_TEST

UNIT("proven", nobody_writes_to_what_is_held, a_lease_ends_for_children_too, what_is_no_file, identities,
     who_may_write, access_lists, primary_groups, the_held_bytes_are_loaded, a_number_that_is_used_again,
     somebody_writes_at_the_last_moment, siblings_are_the_held_ones, what_is_left_of_loading,
     words_name_the_real_files, only_proven_libraries_are_found, each_allocation_fails, eight_threads)
