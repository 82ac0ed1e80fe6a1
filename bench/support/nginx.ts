/** nginx as the service: it answers from files, so that only the network and the client are measured. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../test/support/redis-server.ts";
import { FOLDER as TLS_FOLDER } from "../../test/support/tls.ts";
import { LOG_FORMAT } from "./access-log.ts";

const START_MS = 10_000;
const LOOK_EVERY_MS = 20;

/** Dispose it to stop nginx. */
export interface RunningNginx extends AsyncDisposable {
  readonly url: string;
  /** The same with TLS. */
  readonly secureUrl: string;
  /** The parent of the workers. */
  readonly pid: number;
  /** For `openAccessLog`; empty without `logsRequests`. */
  readonly accessLog: string;
}

export interface NginxOptions {
  /** Laid out by `recordService`. */
  readonly site: string;
  /** For its own files. */
  readonly folder: string;
  /** Of each answer, in bytes per second. */
  readonly rate?: number;
  readonly logsRequests?: boolean;
}

export async function startNginx(program: string, options: NginxOptions): Promise<RunningNginx> {
  const [port, securePort] = [await freePort(), await freePort()];
  mkdirSync(options.folder, { recursive: true });
  const config = join(options.folder, "nginx.conf");
  const accessLog = join(options.folder, "access.log");
  writeFileSync(config, describe(options, port, securePort, accessLog));
  const child = spawn(program, ["-c", config, "-p", options.folder, "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (text: Buffer) => {
    errors = `${errors}${text}`.slice(-10_000);
  });
  const ended = once(child, "exit");
  await untilItListens(child, port, () => errors);
  return {
    url: `http://127.0.0.1:${port}`,
    secureUrl: `https://127.0.0.1:${securePort}`,
    pid: child.pid ?? 0,
    accessLog,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** Throws with the server's errors if it ends or does not listen in time. */
export async function untilItListens(child: ChildProcess, port: number, errors: () => string): Promise<void> {
  for (const latestMs = performance.now() + START_MS; ; await pause(LOOK_EVERY_MS)) {
    if (child.exitCode !== null || performance.now() > latestMs) {
      child.kill("SIGKILL");
      throw new Error(`${child.spawnfile} did not start: ${errors()}`);
    }
    const socket = connect(port, "127.0.0.1");
    const isListening = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isListening) return;
  }
}

/** The service's paths, each answered from a file. */
function describe(
  { site, folder, rate, logsRequests = false }: NginxOptions,
  port: number,
  securePort: number,
  accessLog: string,
): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  const answers = [
    ["/api/users/[^/]+/transfers/received-transfers", "/lists/$arg_page.json", "application/json"],
    ["/api/transfers/([^/]+)", "/transfers/$1/information.json", "application/json"],
    ["/api/transfers/([^/]+)/files", "/transfers/$1/files.json", "application/json"],
    ["/api/transfers/([^/]+)/files/([^/]+)", "/transfers/$1/content/$2", "application/octet-stream"],
    ["/api/transfers/([^/]+)/zip", "/transfers/$1/all.zip", "application/zip"],
    ["/api/transfers/([^/]+)/checksums", "/transfers/$1/checksums.csv", "text/csv"],
  ];
  return `
daemon off;
worker_processes auto;
pid ${join(folder, "pid")};
error_log stderr error;
${process.getuid?.() === 0 ? "user root;" : ""}
events { worker_connections 1024; }
http {
  ${temporary.join("\n  ")}
  ${logsRequests ? `${LOG_FORMAT} access_log ${accessLog} requests;` : "access_log off;"}
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  ${rate === undefined ? "" : `limit_rate ${rate};`}
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${securePort} ssl;
    ssl_certificate ${join(TLS_FOLDER, "server.crt")};
    ssl_certificate_key ${join(TLS_FOLDER, "server.key")};
    root ${site};
    types {}
    ${answers
      .map(([path, file, type]) => `location ~ ^${path}$ { default_type ${type}; try_files ${file} =404; }`)
      .join("\n    ")}
    location /plain/ { autoindex on; }
  }
}
`;
}
