/** The file system that a folder is on, how it is mounted, and its known weaknesses. */
import { readFile, realpath, statfs } from "../base/files.ts";

export interface Mount {
  /** The kernel's name: `ext4`, `nfs4`, `fuse.sshfs`; a number if the name is not known. */
  readonly kind: string;
  /** Missing if it is not known. */
  readonly point: string | undefined;
  /** Of the mount and of the file system: `rw`, `relatime`, `vers=3`. */
  readonly options: readonly string[];
}

/** `path` must exist. Without the kernel's list, only the kind is known, as a number. */
export async function findMountOf(path: string): Promise<Mount> {
  const [list, real] = await Promise.all([
    // There is no such list.
    readFile("/proc/self/mountinfo", "utf8").catch(() => ""),
    realpath(path),
  ]);
  const mount = parseMounts(list).findLast(({ point }) => holds(point, real));
  return mount ?? { kind: `0x${(await statfs(path)).type.toString(16)}`, point: undefined, options: [] };
}

/** The kernel's list, ordered so that the last mount that holds a path is the path's own. */
export function parseMounts(list: string): (Mount & { readonly point: string })[] {
  return list
    .split("\n")
    .flatMap((line) => {
      const [before = "", after] = line.split(" - ");
      const [, , , , point, mountOptions] = before.split(" ");
      const [kind, , superOptions] = after?.split(" ") ?? [];
      if (point === undefined || kind === undefined) return [];
      const options = [mountOptions, superOptions].flatMap((text) => text?.split(",") ?? []);
      return [{ kind, point: unescapeOctal(point), options: [...new Set(options)] }];
    })
    .toSorted((a, b) => a.point.length - b.point.length);
}

/** Why a file system may break what deliveries rest on; `undefined` if no weakness is known. */
export function describeWeakness({ kind, options }: Mount): string | undefined {
  const isFlagged = (flag: RegExp | undefined) => flag === undefined || options.some((it) => flag.test(it));
  return WEAKNESSES.find(({ kinds, flag }) => kinds.test(kind) && isFlagged(flag))?.why;
}

/** `flag`: an option that makes a sound file system weak. Missing: it is weak however it is mounted. */
const WEAKNESSES: readonly { readonly kinds: RegExp; readonly flag?: RegExp; readonly why: string }[] = [
  {
    kinds: /^(nfs4?|cifs|smb3)$/,
    flag: /^(nolock|nobrl|local_lock=(all|posix))$/,
    why: "it is mounted without locks between machines: two daemons on two machines could hold one inbox",
  },
  {
    kinds: /^nfs4?$/,
    flag: /^soft$/,
    why: "it is mounted soft: a slow server loses writes; mount it hard",
  },
  {
    kinds: /^ext[34]$/,
    flag: /^(nobarrier|barrier=0)$/,
    why: "it is mounted without barriers: a power cut can damage what was delivered",
  },
  {
    kinds: /^(tmpfs|ramfs)$/,
    why: "it is kept in memory: a restart loses the records, and every transfer that the service still lists is delivered again",
  },
  {
    kinds: /^overlay$/,
    why: "it is a container's own layer, and is removed with the container: mount a volume for inbox, work and state",
  },
  {
    kinds: /^(vfat|msdos|exfat)$/,
    why: "it has no journal and no hard links: a power cut can damage what was delivered",
  },
  { kinds: /^ext2$/, why: "it has no journal: a power cut can damage what was delivered" },
  {
    kinds: /^(ntfs|ntfs3|fuseblk|hfs|hfsplus)$/,
    why: "it is not native to this system: whether it survives power cuts is not known",
  },
  {
    kinds: /^nfs$/,
    why: "NFS before version 4 keeps its locks apart from its files: use version 4, with lookupcache=positive",
  },
  {
    kinds: /^(cifs|smb3|smbfs|ncpfs|9p|virtiofs|ceph|glusterfs|afs|vboxsf|prl_fs)$/,
    why: "how its server treats renames, fsync and locks cannot be seen from here",
  },
  {
    kinds: /^fuse(\.|$)/,
    why: "a program handles renames, fsync and locks: make sure that it passes each of them on",
  },
];

function holds(point: string, path: string): boolean {
  return point === "/" || path === point || path.startsWith(`${point}/`);
}

/** The kernel writes a space as `\040`, and a few other characters likewise. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
