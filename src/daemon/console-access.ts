/** Who may read and act in the console: its tokens and sessions. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { HttpSettings } from "../config/settings.ts";
import type { ConsoleAccess } from "../console/port.ts";
import { Sessions, type Tokens } from "../console/sessions.ts";
import type { LiveSettings } from "./live-settings.ts";

/** The source of a token may be a command, so tokens are read no more often than this. */
const READ_EVERY_MS = 2_000;

/** `undefined` if everyone may read, and nobody may act. */
export async function openAccess(
  live: LiveSettings,
  clock: Clock,
  stop: AbortSignal,
): Promise<ConsoleAccess | undefined> {
  const { http, inbox } = live.now;
  if (http === undefined) return undefined;
  const daemon = JSON.stringify([hostname(), http.listen, inbox]);
  const cookie = createHash("sha256").update(daemon).digest("hex").slice(0, 12);
  const needsToken = !("path" in http.listen) || http.tokens.size > 0;
  const read = needsToken ? (http.read ?? "open") : "open";
  if (!http.actions && read === "open") return undefined;
  const tokens = needsToken ? await readTokens(http, stop) : undefined;
  const sessions = new Sessions({ tokens, cookie, clock });
  return {
    read,
    sessions,
    renew: needsToken
      ? createTokenReader(live, (read) => sessions.renew(read), clock, stop)
      : async () => true,
  };
}

/** Without `actions`, every token may only read. */
async function readTokens(
  { tokens, actions }: Pick<HttpSettings, "tokens" | "actions">,
  stop: AbortSignal,
): Promise<Tokens> {
  const read = [...tokens].map(async ([name, { source, role }]) => {
    const token = await source.read(stop);
    return [name, { token, role: actions ? role : "read" }] as const;
  });
  return new Map(await Promise.all(read));
}

interface Reading {
  readonly tokens: HttpSettings["tokens"];
  readonly atMs: number;
  readonly isRead: Promise<boolean>;
}

/**
 * Returns a function that reads the tokens again from their present sources, unless that was done a moment ago. It
 * resolves to false if one cannot be read; the caller then accepts no token.
 */
function createTokenReader(
  live: LiveSettings,
  onRead: (tokens: Tokens) => void,
  clock: Clock,
  stop: AbortSignal,
): () => Promise<boolean> {
  let last: Reading | undefined;
  return async () => {
    const { tokens, actions } = live.now.http ?? { tokens: new Map(), actions: false };
    const atMs = clock.now();
    if (last?.tokens !== tokens || Math.abs(atMs - last.atMs) >= READ_EVERY_MS) {
      const isRead = readTokens({ tokens, actions }, stop).then(
        (read) => {
          onRead(read);
          return true;
        },
        () => false,
      );
      last = { tokens, atMs, isRead };
    }
    return last.isRead;
  };
}
