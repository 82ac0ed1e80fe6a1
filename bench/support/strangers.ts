/** Hostile callers of the console at a port, as a program of its own: `node strangers.ts PORT`. Runs until it is killed. */
import { connect } from "node:net";

const LARGE = ["/api/transfers?size=5000", "/api/history?limit=5000", "/history", "/metrics", "/transfers"];
const AGAIN_MS = 100;

interface Stranger {
  readonly connections: number;
  /** Sent on each connection. */
  request(at: number): string;
  /** Read nothing. */
  readonly isDeaf?: boolean;
  /** Without one, until the console closes the connection. */
  readonly staysMs?: number;
}

const STRANGERS: readonly Stranger[] = [
  { connections: 150, request: (at) => get(LARGE[at % LARGE.length] ?? "/"), isDeaf: true },
  { connections: 100, request: () => `${head("POST", "/sign-in")}Content-Length: 100\r\n\r\ntoken=` },
  { connections: 50, request: () => `${head("POST", "/api/actions")}Content-Length: 100\r\n\r\n{` },
  { connections: 60, request: () => get("/api/events"), isDeaf: true },
  { connections: 20, request: (at) => get("/api/status", `Authorization: Bearer wrong-token-${at}\r\n`) },
  { connections: 200, request: () => "", staysMs: 500 },
  { connections: 100, request: () => "GET / HTT" },
];

const port = Number(process.argv[2]);
for (const stranger of STRANGERS) {
  for (let at = 0; at < stranger.connections; at++) visit(stranger, at);
}

function visit(stranger: Stranger, at: number): void {
  const { request, isDeaf = false, staysMs } = stranger;
  const socket = connect(port, "127.0.0.1");
  if (isDeaf) socket.pause();
  else socket.resume();
  const text = request(at);
  if (text !== "") socket.write(text);
  const timer = staysMs === undefined ? undefined : setTimeout(() => socket.destroy(), staysMs);
  // The console closes it.
  socket.on("error", () => {});
  socket.once("close", () => {
    clearTimeout(timer);
    setTimeout(() => visit(stranger, at + 1), AGAIN_MS);
  });
}

function head(method: string, path: string): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`;
}

function get(path: string, more = ""): string {
  return `${head("GET", path)}${more}\r\n`;
}
