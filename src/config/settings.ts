/** The whole configuration as the program uses it: checked, complete, in plain units. */
import type { SecretSource } from "../base/secret.ts";
import type { Handoff, Limits, Mailbox } from "../model/mailbox.ts";

export interface Settings {
  /** Where it was read from, for messages: a path, or `the environment`. */
  readonly source: string;
  /** Absolute paths. */
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
  readonly queue: "embedded";
  readonly mailboxes: readonly MailboxSettings[];
  readonly limits: Limits;
  readonly handoff: Handoff;
  /** What is allowed but should be mended, such as a secret file that others can read; one sentence each. */
  readonly warnings: readonly string[];
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
  /** PEM texts. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Empty texts where there is none. */
  readonly proxy: { readonly http: string; readonly https: string; readonly except: string };
  readonly timeoutMs: number;
}
