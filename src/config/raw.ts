/** The configuration as it was written, once the schema has accepted it: what was refused is left out. */

export interface RawSettings {
  readonly version?: number;
  readonly service?: RawService;
  readonly inbox?: string;
  readonly work?: string;
  readonly state?: string;
  readonly timezone?: string;
  readonly queue?: string;
  readonly redis?: RawRedis;
  readonly role?: "all" | "worker" | "scheduler";
  readonly http?: RawHttp;
  readonly log?: { readonly level?: string };
  /** With holes where an entry was refused, so that the others keep their numbers. */
  readonly mailboxes?: readonly (RawMailbox | undefined)[];
  readonly limits?: {
    readonly transfers?: number;
    readonly filesPerTransfer?: number;
    readonly minFreeSpace?: string | number;
    readonly maxTransferSize?: string | number;
    readonly maxFiles?: number;
    /** With holes, as the mailboxes. */
    readonly bandwidth?: string | readonly ({ readonly at?: string; readonly rate?: string } | undefined)[];
  };
  readonly keep?: RawKeep;
  readonly handoff?: RawHandoff;
}

interface RawHandoff {
  readonly fileMode?: string | number;
  readonly folderMode?: string | number;
  readonly marker?: string;
  /** With holes, as the mailboxes. */
  readonly command?: readonly (string | undefined)[];
  readonly commandTimeout?: string;
  readonly webhook?: {
    readonly url?: string;
    readonly secret?: RawSecret;
    readonly timeout?: string;
    readonly allowHttp?: boolean;
  };
  readonly acknowledgement?: string;
  readonly expectWithin?: string;
  readonly keep?: { readonly collected?: string; readonly uncollected?: string };
}

interface RawKeep {
  readonly ledger?: string;
  readonly history?: string;
}

interface RawHttp {
  readonly listen?: string | boolean;
  readonly actions?: boolean;
  readonly token?: RawSecret;
  /** With holes, as the mailboxes. */
  readonly hosts?: readonly (string | undefined)[];
}

export interface RawRedis {
  readonly username?: string;
  readonly password?: RawSecret;
  readonly ca?: string;
  /** With holes, as the mailboxes. */
  readonly sentinels?: readonly (string | undefined)[];
  readonly sentinelName?: string;
  readonly sentinelPassword?: RawSecret;
  readonly cluster?: readonly (string | undefined)[];
  readonly prefix?: string;
  readonly lock?: string;
}

export interface RawMailbox {
  readonly email?: string;
  readonly name?: string;
  readonly poll?: string;
  readonly fetch?: "auto" | "files" | "zip";
  readonly verify?: "require" | "prefer";
  readonly layout?: string;
  readonly passwords?: readonly (RawPasswordRule | undefined)[];
  readonly passwordAttempts?: number;
  readonly paused?: boolean;
  readonly quiet?: readonly (string | undefined)[];
  readonly expect?: readonly (RawExpectation | undefined)[];
  readonly service?: RawService;
}

export interface RawExpectation {
  readonly sender?: string;
  readonly by?: string;
  readonly days?: string;
  readonly within?: string;
}

export interface RawPasswordRule {
  readonly sender?: string;
  readonly trackingId?: string;
  readonly password?: RawSecret;
}

export interface RawService {
  readonly baseUrl?: string;
  readonly clientId?: RawSecret;
  readonly verification?: "clientId" | { readonly token?: RawSecret };
  readonly acceptLanguage?: string;
  readonly fileIdList?: "repeat" | "comma";
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly proxy?: string;
  readonly timeout?: string;
  readonly allowHttp?: boolean;
}

/** Exactly one of the keys. */
export type RawSecret =
  | string
  | {
      readonly file?: string;
      readonly env?: string;
      readonly credential?: string;
      readonly command?: readonly string[];
    };
