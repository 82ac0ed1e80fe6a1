/*
 * Suspends the process with SIGSTOP before one of its calls that create, link, rename or remove something in a folder, and
 * logs these calls to a file.
 *
 * PAUSE_BELOW: the folder. PAUSE_FROM: a part of the path of the first call that counts. PAUSE_AT: the number of the
 * call, or `/` and a part of the path of the first such call. PAUSE_LOG: the file, elsewhere.
 *
 * Includes no header, so that Debian's package gcc is enough to compile it.
 */
enum { O_WRONLY = 01, O_CREAT = 0100, O_APPEND = 02000, SIGSTOP = 19 };

#define RTLD_NEXT ((void *)-1L)

extern void *dlsym(void *handle, const char *name);
extern char *getenv(const char *name);
extern char *strstr(const char *text, const char *part);
extern int atoi(const char *text);
extern int dprintf(int file, const char *format, ...);
extern int close(int file);
extern int raise(int signal);

typedef int one_path(const char *);
typedef int two_paths(const char *, const char *);
typedef int path_and_mode(const char *, unsigned);
typedef int opening(const char *, int, ...);

static int is_counting;
static int count;
static int was_there;

static void before(const char *call, const char *path) {
  const char *below = getenv("PAUSE_BELOW"), *from = getenv("PAUSE_FROM");
  const char *log = getenv("PAUSE_LOG"), *at = getenv("PAUSE_AT");
  if (!below || !from || !log || !at || !strstr(path, below)) return;
  if (strstr(path, from)) is_counting = 1;
  if (!is_counting) return;
  int number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
  int file = ((opening *)dlsym(RTLD_NEXT, "open64"))(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  dprintf(file, "%s %s\n", call, path);
  close(file);
  /* Stops this thread at once; a signal to the process could reach another thread first. */
  int is_there = *at == '/' ? strstr(path, at + 1) && !__atomic_exchange_n(&was_there, 1, __ATOMIC_SEQ_CST)
                            : number == atoi(at);
  if (is_there) raise(SIGSTOP);
}

int link(const char *from, const char *to) {
  before("link", to);
  return ((two_paths *)dlsym(RTLD_NEXT, "link"))(from, to);
}

int rename(const char *from, const char *to) {
  before("rename", to);
  return ((two_paths *)dlsym(RTLD_NEXT, "rename"))(from, to);
}

int unlink(const char *path) {
  before("unlink", path);
  return ((one_path *)dlsym(RTLD_NEXT, "unlink"))(path);
}

int rmdir(const char *path) {
  before("rmdir", path);
  return ((one_path *)dlsym(RTLD_NEXT, "rmdir"))(path);
}

int mkdir(const char *path, unsigned mode) {
  before("mkdir", path);
  return ((path_and_mode *)dlsym(RTLD_NEXT, "mkdir"))(path, mode);
}

static int open_any(const char *path, int flags, unsigned mode) {
  if (flags & O_CREAT) before("create", path);
  return ((opening *)dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, flags);
  unsigned mode = __builtin_va_arg(list, unsigned);
  __builtin_va_end(list);
  return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, flags);
  unsigned mode = __builtin_va_arg(list, unsigned);
  __builtin_va_end(list);
  return open_any(path, flags, mode);
}
