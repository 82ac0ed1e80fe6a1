/** The configuration as the program uses it: complete, checked, in plain units. */

import { isAbsolute, join } from "node:path";
import type { SecretSource } from "../base/secret.ts";
import { type Handoff, type Limits, type Mailbox, mailboxOf } from "../model/mailbox.ts";
import type { ChannelSettings } from "../model/notify.ts";
import type { ReadAccess, Role } from "../model/order.ts";
import type { Routed } from "../model/record.ts";
import { routeOf } from "../model/route.ts";
import type { KeepSettings } from "./limits.ts";
import type { RedisQueueSettings } from "./queue.ts";
import type { ServiceSettings } from "./service.ts";

export type { RedisQueueSettings, ServiceSettings };

/** The configuration file if none is named, and the user has none. */
export const DEFAULT_PATH = "/etc/inlet/inlet.yaml";

/** The file in the user's own configuration folder; `undefined` for a user without a home. */
export function userPath(env: NodeJS.ProcessEnv): string | undefined {
  const { XDG_CONFIG_HOME: folder, HOME: home } = env;
  if (folder !== undefined && isAbsolute(folder)) return join(folder, "inlet/inlet.yaml");
  return home !== undefined && isAbsolute(home) ? join(home, ".config/inlet/inlet.yaml") : undefined;
}

export interface Settings {
  /** The source of the settings, for messages: a path, or `the environment`. */
  readonly source: string;
  /** Identifies the file's text; `undefined` without a file. */
  readonly digest?: string | undefined;
  /** Absolute paths. */
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
  /** The configuration names the state folder; otherwise it depends on the environment and the user. */
  readonly isStateNamed?: boolean;
  /** For times that people see; `undefined`: the machine's. */
  readonly timezone?: string | undefined;
  readonly queue: "embedded" | RedisQueueSettings;
  readonly mailboxes: readonly MailboxSettings[];
  readonly limits: Limits;
  readonly handoff: Handoff;
  readonly notify?: readonly ChannelSettings[];
  readonly keep: KeepSettings;
  /** `undefined`: there is no console. */
  readonly http: HttpSettings | undefined;
  /** `undefined`: each command has its own default. */
  readonly logLevel?: string | undefined;
  /** Valid settings that should be changed, such as a secret file that others can read; one sentence each. */
  readonly warnings: readonly string[];
}

export interface HttpSettings {
  /** Port 0 is any free one. */
  readonly listen: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Whether visitors may act. They need a token, except on a Unix socket. */
  readonly actions: boolean;
  /** By name. */
  readonly tokens: ReadonlyMap<string, TokenSettings>;
  /** What needs a token to be read, except on a Unix socket without tokens. Missing: `open`. */
  readonly read?: ReadAccess;
  /** In lower case. */
  readonly hosts: readonly string[];
  /** The address under which people open the console, without a slash at its end. */
  readonly publicUrl?: string | undefined;
}

export interface TokenSettings {
  readonly source: SecretSource;
  readonly role: Role;
}

export interface MailboxSettings extends Mailbox {
  readonly service: ServiceSettings;
}

/**
 * The hand-off of a transfer, by its mailbox and the rule that decided. A mailbox that is no longer configured may have had
 * its own: the common one takes its place, and then removes no folder. Without the rule that decided, nothing is removed,
 * and no command or webhook runs.
 */
export function handoffOf({ mailboxes, handoff: common }: Settings, { mailbox, rule }: Routed): Handoff {
  const found = mailboxOf(mailboxes, { mailbox });
  const own = found && routeOf(found, { rule });
  const { keep, command, webhook, ...others } = own?.handoff ?? found?.handoff ?? common;
  if (rule !== undefined && own === undefined) return { ...others, isGone: true };
  const steps = { ...(command && { command }), ...(webhook && { webhook }) };
  return found === undefined ? { ...others, ...steps } : (own?.handoff ?? found.handoff ?? common);
}

/** Every hand-off: the common one, and those of mailboxes and routes. */
export function handoffsOf(settings: Settings): Handoff[] {
  return [...new Set([settings, ...targetsOf(settings)].map(({ handoff }) => handoff))];
}

/** The numbers of the groups of delivered files, as far as they were looked up. */
export function groupsOf(settings: Settings): number[] {
  return [...new Set(handoffsOf(settings).flatMap(({ gid }) => gid ?? []))];
}

export type Target = ReturnType<typeof targetsOf>[number];

/** Where deliveries go: for each mailbox, those that match no route, then those of each route. */
export function targetsOf({ mailboxes, ...common }: Settings) {
  return mailboxes.flatMap(({ name: mailbox, layout, routing, ...own }) => {
    const { inbox = common.inbox, handoff = common.handoff } = own;
    const target = { mailbox, inbox, layout, handoff };
    const routes = (routing?.routes ?? []).map((route) => ({
      mailbox,
      inbox: route.inbox ?? inbox,
      layout: route.layout ?? layout,
      handoff: route.handoff ?? handoff,
    }));
    return [target, ...routes];
  });
}

/** The inboxes to deliver to, each with the mode that it gets if it has to be created. The common one comes first. */
export function inboxesOf(settings: Settings): { readonly path: string; readonly mode: number }[] {
  const all = [settings, ...targetsOf(settings)];
  const paths = [...new Set(all.map(({ inbox }) => inbox))];
  return paths.map((path) => ({
    path,
    mode: all.find(({ inbox }) => inbox === path)?.handoff.folderMode ?? 0,
  }));
}
