/** CPU profiles, in separate runs because a profiler takes time of its own. */
import { join } from "node:path";
import { FILES_AT_ONCE } from "../support/bare-files.ts";
import { type Bench, runInlet, serveRecording } from "../support/bench.ts";
import { profileInto, readShares, type Shares } from "../support/profile.ts";
import type { Wanted } from "../support/recording.ts";

export interface Profile {
  readonly what: string;
  readonly shares: Shares;
}

const KIB = 1024;
const GIB = 1024 ** 3;

export async function measureProfiles(bench: Bench): Promise<Profile[]> {
  const scaled = (count: number) => Math.max(1, Math.round(count * bench.scale));
  const contents: readonly (readonly [string, Wanted])[] = [
    ["one large file", { transfers: 1, files: 1, bytes: scaled(2 * GIB) }],
    ["many small files", { transfers: 1, files: scaled(2_000), bytes: 16 * KIB }],
    ["many small transfers", { transfers: scaled(1_000), files: 3, bytes: 10 * KIB }],
  ];
  const profiles: Profile[] = [];
  for (const [what, content] of contents) {
    const own = { ...bench, folder: join(bench.folder, String(profiles.length)) };
    await using service = await serveRecording(own, content);
    const into = join(own.folder, "profile");
    const limits = { filesPerTransfer: FILES_AT_ONCE };
    await runInlet(own, { url: service.nginx.url, limits }, content, profileInto(into));
    profiles.push({ what, shares: readShares(into) });
  }
  return profiles;
}
