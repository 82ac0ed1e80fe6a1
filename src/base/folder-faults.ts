/** Faults of the folders that Inlet needs and of the group of delivered files, a part of `FAULT_CODES`. */
export const FOLDER_FAULTS = {
  DISK_UNMOUNTED: {
    verdict: "wait",
    happened: "The disk of a folder that Inlet needs is not mounted",
    advice: "Mount the disk. Inlet writes nothing until then, and continues by itself within a minute.",
  },
  DISK_REPLACED: {
    verdict: "wait",
    happened: "Another disk or folder is in the place of a folder that Inlet needs",
    advice:
      "Mount the right disk there, or move the right folder back. Inlet writes nothing until then, and continues by itself within a minute.",
  },
  DISK_READ_ONLY: {
    verdict: "wait",
    happened: "The disk is mounted read-only",
    advice:
      "Linux does that after errors of the disk: read the kernel's messages with dmesg, and check the disk. Then mount it writable. Inlet continues by itself within a minute.",
  },
  FOLDER_MISSING: {
    verdict: "wait",
    happened: "A folder that Inlet needs is missing",
    advice:
      "Move the folder back, or restore it from a backup. Inlet writes nothing until then, and continues by itself within a minute.",
  },
  INBOX_MISSING: {
    verdict: "wait",
    happened: "The inbox of this delivery is missing",
    advice:
      "Nothing was lost: the content is complete in the work folder. Mount the disk of the inbox, or create the inbox. The delivery then follows by itself.",
  },
  PROC_MISSING: {
    verdict: "wait",
    happened: "The system has no usable /proc, which deliveries need",
    advice:
      "Inlet reaches open folders through /proc/self/fd, so that no link can redirect a delivery. Mount /proc where Inlet runs. The delivery then follows by itself.",
  },
  INBOX_APART: {
    verdict: "wait",
    happened: "This inbox is on another file system or mount than the work folder",
    advice:
      "A delivery is one rename, which works only within one mount. Choose an inbox on the work folder's file system. Under systemd, name one folder above both folders in ReadWritePaths=. In a container, mount one volume that holds both folders.",
  },
  GROUP_UNKNOWN: {
    verdict: "wait",
    happened: "This system has no group of this name",
    advice: "Create the group, or correct handoff.group. In a container, give the group's number.",
  },
  GROUP_REFUSED: {
    verdict: "wait",
    happened: "Inlet may not give files to the group in handoff.group",
    advice:
      "Make Inlet a member of the group. Under systemd, add SupplementaryGroups=GROUP, PrivateUsers=no and SystemCallFilter=@chown to the unit. For a container, use --group-add, group_add or supplementalGroups.",
  },
} as const;
