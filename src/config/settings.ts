/** The whole configuration as the program uses it: checked, complete, in plain units. */
import type { SecretSource } from "../base/secret.ts";
import type { Handoff, Limits, Mailbox } from "../model/mailbox.ts";

/** The file that is read where none is named. */
export const DEFAULT_PATH = "/etc/inlet/inlet.yaml";

export interface Settings {
  /** Where the settings come from, for messages: a path, or `the environment`. */
  readonly source: string;
  /** Of the file's text, to notice changes; `undefined` without a file. */
  readonly digest?: string | undefined;
  /** Absolute paths. */
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
  /** The configuration names the state folder; otherwise it depends on the environment and the user. */
  readonly isStateNamed?: boolean;
  readonly queue: "embedded" | RedisQueueSettings;
  readonly mailboxes: readonly MailboxSettings[];
  readonly limits: Limits;
  readonly handoff: Handoff;
  readonly keep: KeepSettings;
  /** `undefined`: there is no status page. */
  readonly http: HttpSettings | undefined;
  /** `undefined`: each command has its own default. */
  readonly logLevel?: string | undefined;
  /** Allowed settings that should be changed, such as a secret file that others can read; one sentence each. */
  readonly warnings: readonly string[];
}

/** How long records are kept; missing: for ever. */
export interface KeepSettings {
  /** The records of a transfer, after its expiry. */
  readonly ledgerMs: number | undefined;
  readonly historyMs: number | undefined;
}

export interface HttpSettings {
  /** Port 0 is any free one. */
  readonly listen: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Whether visitors may act. They need the `token`, which may be missing on a Unix socket. */
  readonly actions: boolean;
  readonly token: SecretSource | undefined;
  /** In lower case. */
  readonly hosts: readonly string[];
}

/** A queue that several processes share. */
export interface RedisQueueSettings {
  /**
   * Never holds a user or password. The scheme says whether TLS is used, the path names the database. Host and port
   * count only where neither sentinels nor nodes of a cluster are named.
   */
  readonly url: URL;
  readonly username: string | undefined;
  readonly password: SecretSource | undefined;
  /** PEM text. */
  readonly ca: string | undefined;
  /** `host:port` of each; at most one of the two lists has entries. */
  readonly sentinels: readonly string[];
  readonly sentinelName: string;
  readonly sentinelPassword: SecretSource | undefined;
  readonly cluster: readonly string[];
  /** Begins every key; in braces for a cluster. */
  readonly prefix: string;
  /** After this time without a heartbeat another process may take over a transfer. */
  readonly lockMs: number;
  /** A worker only downloads, a scheduler only polls. */
  readonly role: "all" | "worker" | "scheduler";
}

export interface MailboxSettings extends Mailbox {
  readonly service: ServiceSettings;
}

export interface ServiceSettings {
  readonly baseUrl: URL;
  /** Missing: one is made and kept in the state folder. */
  readonly clientId: SecretSource | undefined;
  /** A token obtained before; missing: obtained on the strength of the client id. */
  readonly token: SecretSource | undefined;
  readonly acceptLanguage: string;
  /** How a list of file-ids is written in a query. */
  readonly idListForm: "repeat" | "comma";
  /** PEM texts. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Empty texts where there is none. */
  readonly proxy: { readonly http: string; readonly https: string; readonly except: string };
  readonly timeoutMs: number;
}
