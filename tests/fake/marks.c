/* Says that its code ran: its constructor adds FAKE_MARK to the file that the environment names. */
#include "fake.h"

#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void leave_mark(void)
{
    const char *path = getenv("FAKE_MARK_FILE"), mark = FAKE_MARK;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd >= 0 && write(fd, &mark, 1) != 1) abort();
    if (fd >= 0) close(fd);
}

FAKE(nothing)
{
    UNUSED;
    return 0;
}
