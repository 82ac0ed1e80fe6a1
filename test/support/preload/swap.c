/*
 * Exchanges two paths again and again, until it is killed or its parent ends: as a consumer that puts a link where Inlet
 * delivers. Any program that loads it never starts.
 *
 * SWAP_ONE, SWAP_OTHER: the paths.
 *
 * Includes no header, so that Debian's package gcc is enough to compile it.
 */
enum { AT_FDCWD = -100, RENAME_EXCHANGE = 2, PR_SET_PDEATHSIG = 1, SIGKILL = 9 };

extern char *getenv(const char *name);
extern int prctl(int option, ...);
extern int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
extern int usleep(unsigned microseconds);

__attribute__((constructor)) static void swap(void) {
  const char *one = getenv("SWAP_ONE");
  const char *other = getenv("SWAP_OTHER");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* Pauses of different lengths: the folder and the link are seen for a few steps of the daemon each. */
  for (unsigned turn = 0;; turn++) {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
    usleep(turn * 37 % 300);
  }
}
