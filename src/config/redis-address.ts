/** The address of a Redis: checked, split from its password, and safe to show. */
import { type Draft, showValue } from "./draft.ts";
import { HOST_PATTERN, type SchemaNode, TEXT } from "./schema-nodes.ts";

export const QUEUE = {
  ...TEXT,
  title: "embedded, or the address of a Redis such as redis://redis.example.com:6379/0",
  default: "embedded",
  description:
    "Where jobs wait. `embedded`: in the process itself, for one process on one machine. The address of a Redis: in that Redis, so that several processes share the work. The address is `redis://USER:PASSWORD@HOST:PORT/DATABASE`, of which only the host is required; `rediss://` uses TLS. The group `redis` has more settings.",
  writeOnly: true,
} as const satisfies SchemaNode;

export interface RedisAddress {
  /** Scheme, host, port and database alone. */
  readonly url: URL;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** For messages. */
  readonly shown: string;
}

const HOST = new RegExp(`^(${HOST_PATTERN})?$`);
const DATABASE = /^\/?(0|[1-9]\d{0,5})?$/;

/** After an unescaped character, the rest of a password looks like another part of the address. */
const ESCAPING =
  "put a password with special characters into redis.password, or escape each of them with % and two digits, such as %2F";

/** Problems go to the draft. */
export function readAddress(text: string, { problems }: Draft): RedisAddress | undefined {
  const shown = showAddress(text);
  const refuse = (message: string, hint: string = ""): undefined => {
    const hints = [hint, shown === undefined && text.includes("@") ? ESCAPING : ""].filter(Boolean);
    problems.add(["queue"], [message, ...hints].join(": "));
  };
  const url = URL.parse(text);
  const isRedis = url !== null && /^rediss?:\/\//i.test(text.trim());
  if (!isRedis || !HOST.test(url.hostname) || url.port === "0") {
    return refuse(shown === undefined ? `must be ${QUEUE.title}` : `${shown} is not ${QUEUE.title}`);
  }
  if (/[?#]/.test(text)) return refuse("must not contain ? or #", "select a database with a path such as /3");
  if (!DATABASE.test(url.pathname)) {
    return refuse(
      `${shown === undefined ? "" : `${shown} `}must end with a database such as /3, or have no path`,
    );
  }
  const [username, password] = [decode(url.username), decode(url.password)];
  if (username === undefined || password === undefined) {
    return refuse("contains a % that is not followed by the code of a character", ESCAPING);
  }
  url.username = "";
  url.password = "";
  return {
    url,
    username: username || undefined,
    password: password || undefined,
    shown: shown ?? showValue(url.href),
  };
}

/** Without user and password; `undefined` if it is uncertain where they end. */
function showAddress(text: string): string | undefined {
  const [, scheme, user, rest] = /^\s*([a-z][a-z0-9+.-]*:\/\/)([^@/?#]*@)?([^@?#]*)$/i.exec(text) ?? [];
  if (scheme === undefined || rest === undefined || !URL.canParse(text)) return undefined;
  return showValue(`${scheme}${user === undefined ? "" : "[secret]@"}${rest}`);
}

/** `undefined` for a wrong escape. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
