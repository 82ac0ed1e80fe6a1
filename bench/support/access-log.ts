/** The requests as nginx saw them. */
import { readFileSync, truncateSync } from "node:fs";

/** For nginx's configuration. */
export const LOG_FORMAT = `log_format requests escape=json
    '{"endS":$msec,"tookS":$request_time,"agent":"$http_user_agent","path":"$request_uri"}';`;

/** Times are those of `Date.now()`, in steps of 1 ms. */
export interface LoggedRequest {
  /** The first byte of the request has arrived. */
  readonly startMs: number;
  /** The last byte of the answer is sent. */
  readonly endMs: number;
  readonly agent: string;
  /** With its query. */
  readonly path: string;
}

export interface AccessLog {
  /** nginx appends, so it continues with an empty file. */
  clear(): void;
  /** In the order of their start. A request is added at its end. */
  read(): LoggedRequest[];
}

export function openAccessLog(file: string): AccessLog {
  return {
    clear: () => truncateSync(file),
    read() {
      const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
      return lines.map(parseLine).toSorted((one, other) => one.startMs - other.startMs);
    },
  };
}

function parseLine(line: string): LoggedRequest {
  const { endS, tookS, agent, path } = JSON.parse(line) as Record<"endS" | "tookS", number> &
    Record<"agent" | "path", string>;
  const endMs = Math.round(endS * 1000);
  return { startMs: endMs - Math.round(tookS * 1000), endMs, agent, path };
}
