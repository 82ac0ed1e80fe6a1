/** The configuration of a world: its mailboxes, services, routes and hand-offs, and the file that says so. */

export const INBOX = "/data/inbox";
/** Where a person moves or copies the inbox to. */
export const MOVED_INBOX = "/data/moved";
/** Of a department or a route. */
export const OTHER_INBOX = "/data/other";
export const STATE = "/state";
/** Nothing may ever be written here. */
export const OUTSIDE = "/outside";

export const BOX = "box@example.com";
export const SECOND_BOX = "second@example.com";
export const THIRD_BOX = "third@example.com";

/** Two services, each with the spellings of its address that lead to it. */
export const ADDRESSES: readonly (readonly string[])[] = [
  [
    "https://service.example",
    "https://service.example.",
    "https://files.service.example",
    "https://198.51.100.7",
  ],
  ["https://other.example/share", "https://other.example/s%68are"],
];
/** What rules know of each service, and the client id that its administrator has registered. */
export const RULE_PASSWORDS = ["Secret-common", "Secret-other"] as const;
export const CLIENT_IDS = [`ClientA${"0".repeat(60)}`, `ClientB${"0".repeat(60)}`] as const;

/** Each program belongs to one owner of hand-offs, and decides by what the world says. */
export const PROGRAMS = {
  common: "/bin/common",
  [BOX]: "/bin/of-box",
  [SECOND_BOX]: "/bin/of-second",
  [THIRD_BOX]: "/bin/of-third",
  urgent: "/bin/urgent",
  check: "/bin/check",
} as const;

/** The names that configurations of worlds give to it. */
export const ACKNOWLEDGEMENTS = ["ok.txt", "seen.txt"] as const;

export type Action = "deliver" | "hold" | "ignore";

export interface RawRoute {
  readonly name?: string;
  readonly sender?: string;
  readonly subject?: string;
  readonly file?: string;
  readonly action?: Action;
  readonly inbox?: string;
  readonly layout?: string;
  readonly handoff?: RawHandoff;
}

export interface RawHandoff {
  readonly command?: readonly string[];
  readonly webhook?: { readonly url: string; readonly secret: string };
  readonly keep?: { readonly pickedUp?: string; readonly notPickedUp?: string };
  readonly acknowledgement?: string;
  readonly marker?: string;
  readonly deliver?: "folder" | "files";
  readonly manifest?: "inside" | "beside" | "none";
  readonly done?: boolean;
  readonly unpack?: "none" | "beside" | "instead";
  readonly fileMode?: string;
  readonly folderMode?: string;
}

/** A mailbox. The address and the service say whose it is; the name is a label. */
export interface Box {
  readonly email: string;
  readonly name?: string;
  readonly service: number;
  readonly routes: readonly RawRoute[];
  readonly otherwise: Action;
  readonly handoff?: RawHandoff;
  readonly inbox?: string;
  readonly knowsPassword: boolean;
  readonly verify?: "require" | "prefer";
}

/** The configuration, as far as worlds change it. */
export interface Site {
  readonly boxes: readonly Box[];
  /** How the address of each service is spelled. */
  readonly addresses: readonly [string, string];
  readonly inbox: string;
  readonly fetch: "files" | "zip" | "auto";
  readonly handoff: RawHandoff;
  readonly hasCheck: boolean;
  /** Several processes and the engine that they share. */
  readonly isShared: boolean;
  /** Of all mailboxes; missing: the default. */
  readonly layout?: string;
  readonly passwordAttempts?: number;
  readonly maxFiles?: number;
  readonly maxBytes?: number;
  /** Missing: 60. */
  readonly pollSeconds?: number;
  /** What is notified of. Missing: everything. */
  readonly notifyOn?: readonly string[];
}

export const PLAIN_BOX: Box = {
  email: BOX,
  service: 0,
  routes: [],
  otherwise: "deliver",
  knowsPassword: true,
};

/** One mailbox, folders, and a command that follows each delivery. */
export const PLAIN: Site = {
  boxes: [PLAIN_BOX],
  addresses: ["https://service.example", "https://other.example/share"],
  inbox: INBOX,
  fetch: "files",
  handoff: { command: [PROGRAMS.common] },
  hasCheck: false,
  isShared: false,
};

export function workOf(site: Site): string {
  return `${site.inbox}/.inlet`;
}

/** The text of the configuration file. */
export function formatSite(site: Site): string {
  const serviceOf = (number: number) => ({ baseUrl: site.addresses[number], clientId: CLIENT_IDS[number] });
  const mailboxes = site.boxes.map(({ service, knowsPassword, ...box }) => ({
    ...box,
    passwords: knowsPassword ? [{ sender: "*", password: RULE_PASSWORDS[service] }] : [],
    ...(service === 0 ? {} : { service: serviceOf(service) }),
  }));
  return JSON.stringify({
    service: serviceOf(0),
    inbox: site.inbox,
    state: STATE,
    timezone: "UTC",
    ...(site.isShared ? { queue: "redis://127.0.0.1:6379" } : {}),
    defaults: {
      poll: `${site.pollSeconds ?? 60}s`,
      fetch: site.fetch,
      passwordAttempts: site.passwordAttempts,
      ...(site.layout === undefined ? {} : { layout: site.layout }),
    },
    limits: { minFreeSpace: "1MiB", maxFiles: site.maxFiles, maxTransferSize: site.maxBytes },
    mailboxes,
    handoff: site.handoff,
    http: { listen: false },
    ...(site.hasCheck ? { check: { command: [PROGRAMS.check] } } : {}),
    notify: [
      {
        webhook: { url: "https://hooks.example/notify", secret: "Hook-1" },
        gather: "5s",
        every: "1m",
        ...(site.notifyOn && { on: site.notifyOn }),
      },
    ],
  });
}
