/** The address of a Redis: checked, without its password, and safe to show. */
import { type Draft, showValue } from "./draft.ts";
import { HOST_PATTERN, type SchemaNode, TEXT } from "./schema-nodes.ts";

export const QUEUE = {
  ...TEXT,
  title: "embedded, or the address of a Redis such as redis://redis.example.com:6379/0",
  default: "embedded",
  description:
    "The job queue. `embedded` is one process on one machine. The address of a Redis, `redis://USER:PASSWORD@HOST:PORT/DATABASE`, lets several processes share the work; only the host is required. `rediss://` uses TLS. The group `redis` has the details.",
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

/** An unescaped character of a password makes the rest of it look like something else. */
const ESCAPING =
  "a password that holds more than letters and digits is best given as redis.password, or each other character is written as % and two digits, such as %2F";

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
  if (/[?#]/.test(text)) return refuse("must hold no ? or #", "a database is named by a path such as /3");
  if (!DATABASE.test(url.pathname)) {
    return refuse(
      `${shown === undefined ? "" : `${shown} `}must end in the number of a database such as /3, or in no path`,
    );
  }
  const [username, password] = [decode(url.username), decode(url.password)];
  if (username === undefined || password === undefined) {
    return refuse("holds a % that is not followed by the code of a character", ESCAPING);
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

/** Without user and password; `undefined` where their extent is uncertain. */
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
