/** On which file system a folder stands, what is known of its kind, and how it is mounted. */
import { readFile, realpath, statfs } from "node:fs/promises";

export interface Mount {
  /** As the kernel calls it: `ext4`, `nfs4`, `fuse.sshfs`; a number where it cannot be told. */
  readonly kind: string;
  /** Where it is mounted; missing where that cannot be told. */
  readonly point: string | undefined;
  /** Those of the mount and of the file system: `rw`, `relatime`, `vers=3`. */
  readonly options: readonly string[];
}

/** `path` must exist. Never throws for want of the kernel's list: then only a number is known of the kind. */
export async function findMountOf(path: string): Promise<Mount> {
  const [list, real] = await Promise.all([
    readFile("/proc/self/mountinfo", "utf8").catch(() => ""),
    realpath(path),
  ]);
  const mount = parseMounts(list).findLast(({ point }) => holds(point, real));
  return mount ?? { kind: `0x${(await statfs(path)).type.toString(16)}`, point: undefined, options: [] };
}

/** The kernel's list, ordered so that the last one that holds a path counts. */
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

/** Why a file system cannot promise what a delivery rests on; `undefined` where nothing is known against it. */
export function describeWeakness({ kind, options }: Mount): string | undefined {
  const flagged = FLAGS.find(({ flag, kinds }) => kinds.test(kind) && options.some((it) => flag.test(it)));
  return flagged?.why ?? KINDS.find(({ kinds }) => kinds.test(kind))?.why;
}

/** Kinds that are weak however they are mounted. */
const KINDS: readonly { readonly kinds: RegExp; readonly why: string }[] = [
  {
    kinds: /^(tmpfs|ramfs)$/,
    why: "it is kept in memory: after a restart records are gone, and what the service still lists is delivered again",
  },
  {
    kinds: /^overlay$/,
    why: "it is the layer of a container, and gone with it: mount a volume for inbox, work and state",
  },
  {
    kinds: /^(vfat|msdos|exfat)$/,
    why: "it has no journal and no hard links: a power cut can damage what was delivered",
  },
  { kinds: /^ext2$/, why: "it has no journal: a power cut can damage what was delivered" },
  {
    kinds: /^(ntfs|ntfs3|fuseblk|hfs|hfsplus)$/,
    why: "it is a guest on this system: how safe it is against power cuts is not known",
  },
  {
    kinds: /^nfs$/,
    why: "NFS before version 4 keeps its locks apart from its files: use version 4, with lookupcache=positive",
  },
  {
    kinds: /^(cifs|smb3|smbfs|ncpfs|9p|virtiofs|ceph|glusterfs|afs|vboxsf|prl_fs)$/,
    why: "what its server promises of renames, fsync and locks cannot be seen from here",
  },
  {
    kinds: /^fuse(\.|$)/,
    why: "a program in between answers for renames, fsync and locks: make sure that it hands each of them on",
  },
];

/** How a sound kind becomes a weak one. */
const FLAGS: readonly { readonly kinds: RegExp; readonly flag: RegExp; readonly why: string }[] = [
  {
    kinds: /^(nfs4?|cifs|smb3)$/,
    flag: /^(nolock|nobrl|local_lock=(all|posix))$/,
    why: "it is mounted without locks between machines: two daemons on two machines could hold one inbox",
  },
  {
    kinds: /^nfs4?$/,
    flag: /^soft$/,
    why: "it is mounted soft, so that a slow server loses writes: mount it hard",
  },
  {
    kinds: /^ext[34]$/,
    flag: /^(nobarrier|barrier=0)$/,
    why: "it is mounted without barriers: a power cut can damage what was delivered",
  },
];

function holds(point: string, path: string): boolean {
  return point === "/" || path === point || path.startsWith(`${point}/`);
}

/** The kernel writes a space as `\040`, and a few others alike. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
