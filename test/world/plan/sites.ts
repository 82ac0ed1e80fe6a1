/** Makes sites, and changes them as operators do: a rule, a hand-off, or whose mailbox it is. */

import type { Random } from "../ground/random.ts";
import type { Taste } from "./happenings.ts";
import {
  type Action,
  ADDRESSES,
  BOX,
  type Box,
  INBOX,
  OTHER_INBOX,
  PROGRAMS,
  type RawHandoff,
  type RawRoute,
  SECOND_BOX,
  type Site,
  THIRD_BOX,
} from "./site.ts";

/** Of rules. */
const NAMES = Array.from({ length: 6 }, (_, number) => `rule-${number}`);

export function makeSite(random: Random, taste: Taste): Site {
  const box = (email: string, service: number): Box => {
    const routes = Array.from({ length: random.int(3) }, () => makeRoute(random, taste));
    return {
      email,
      service,
      routes: withNames(email === BOX ? routes : routes.slice(2)),
      otherwise: random.weighted({ deliver: 7, ignore: 1, hold: 1 }),
      knowsPassword: random.chance(taste.knowsPassword),
      ...(random.chance(0.15) ? { handoff: { command: [PROGRAMS[email as typeof BOX]] } } : {}),
      ...(random.chance(0.1) ? { inbox: OTHER_INBOX } : {}),
      ...(random.chance(0.15) ? { name: `name-${random.int(2)}-${email.slice(0, 3)}` } : {}),
      ...(random.chance(0.2) ? { verify: "prefer" as const } : {}),
    };
  };
  const boxes = [
    box(BOX, 0),
    ...(random.chance(0.3) ? [box(SECOND_BOX, random.chance(0.5) ? 0 : 1)] : []),
    ...(random.chance(0.1) ? [box(THIRD_BOX, 1)] : []),
  ];
  return {
    boxes,
    addresses: ["https://service.example", "https://other.example/share"],
    inbox: INBOX,
    fetch: random.weighted({ files: 4, zip: 3, auto: 1 }),
    handoff: makeHandoff(random, taste),
    hasCheck: random.chance(taste.check),
    isShared: random.chance(0.15),
    ...(random.chance(0.15) ? { passwordAttempts: 1 + random.int(3) } : {}),
    ...(random.chance(0.08) ? { maxFiles: 1 + random.int(2) } : {}),
    ...(random.chance(0.1) ? { maxBytes: 300 + random.int(600) } : {}),
    ...(random.chance(0.15) ? { pollSeconds: random.pick([20, 120]) } : {}),
    ...(random.chance(0.1) ? { notifyOn: makeKinds(random) } : {}),
  };
}

export function makeKinds(random: Random): readonly string[] {
  return ["password", "quarantined", "gone", "held", "refused", "handoff"]
    .filter(() => random.chance(0.6))
    .concat("disk");
}

function makeHandoff(random: Random, taste: Taste): RawHandoff {
  return {
    ...(random.chance(taste.command) ? { command: [PROGRAMS.common] } : {}),
    ...(random.chance(0.2) ? { webhook: { url: "https://hooks.example/hand-over", secret: "Hook-0" } } : {}),
    ...(random.chance(0.2) ? { keep: makeKeep(random) } : {}),
    ...random.choose<RawHandoff>([
      [6, random.chance(0.3) ? { acknowledgement: random.pick(["ok.txt", "seen.txt"]) } : {}],
      [1, { marker: "ready" }],
      [2, { manifest: "beside" as const }],
      [1, { manifest: "none" as const }],
      [1, { done: true }],
      [2, { deliver: "files" as const, manifest: "beside" as const }],
      [1, { deliver: "files" as const, done: true }],
    ]),
    ...(random.chance(taste.unpack)
      ? { unpack: random.pick(["instead", "instead", "beside"] as const) }
      : {}),
    ...(random.chance(0.15) ? { fileMode: "0600", folderMode: "0700" } : {}),
  };
}

function makeKeep(random: Random): NonNullable<RawHandoff["keep"]> {
  return random.chance(0.5) ? { notPickedUp: "5m" } : { pickedUp: "2m" };
}

function makeRoute(random: Random, taste: Taste): RawRoute {
  const name = random.chance(taste.names) ? `rule-${random.int(3)}` : undefined;
  const when = random.pick<RawRoute>([
    { file: "*.zip" },
    { sender: "*@a.example" },
    { subject: "*urgent*" },
    { file: "*.txt" },
  ]);
  const then = random.pick<RawRoute>([
    { inbox: OTHER_INBOX },
    { handoff: { keep: makeKeep(random) } },
    { handoff: { keep: makeKeep(random) } },
    { action: "hold" },
    { action: "ignore" },
    { layout: "urgent/{trackingId}", handoff: { command: [PROGRAMS.urgent, name ?? "none"] } },
    {},
  ]);
  return { ...(name === undefined ? {} : { name }), ...when, ...then };
}

/** A name for each that needs one, and each name once: the program refuses other configurations. */
function withNames(routes: readonly RawRoute[]): RawRoute[] {
  const taken = new Set<string>();
  const free = () => NAMES.find((name) => !taken.has(name)) ?? "rule";
  return routes.map((route) => {
    const { name, handoff, inbox, layout } = route;
    const isNeeded = handoff !== undefined || inbox !== undefined || layout !== undefined;
    if (name === undefined && !isNeeded) return route;
    const own = name === undefined || taken.has(name) ? free() : name;
    taken.add(own);
    return { ...route, name: own };
  });
}

/** Another configuration, which differs in one respect. */
export function changeSite(random: Random, site: Site, taste: Taste): Site {
  const at = random.int(site.boxes.length);
  const { routes = [] } = site.boxes[at] ?? {};
  const withBox = (more: Partial<Box>) => withBoxAt(site, at, more);
  switch (random.int(15)) {
    case 0:
    case 1:
      return withBox({ routes: [makeRoute(random, taste), ...routes] });
    case 2:
      return withBox({ routes: routes.slice(1) });
    case 3: {
      const [first, ...rest] = routes;
      if (first === undefined) return withBox({ routes: [makeRoute(random, taste)] });
      return withBox({ routes: [{ ...first, name: `rule-${random.int(5)}` }, ...rest] });
    }
    case 4: {
      const { email = BOX } = site.boxes[at] ?? {};
      return withBox({
        email:
          email === email.toLowerCase() ? email.replace(/^./, (it) => it.toUpperCase()) : email.toLowerCase(),
      });
    }
    case 5:
      return { ...site, hasCheck: !site.hasCheck };
    case 6:
      return toggleCommand(site);
    case 7:
      return { ...site, handoff: makeHandoff(random, taste) };
    case 11:
      return { ...site, pollSeconds: random.pick([20, 60, 120]) };
    case 12:
      return { ...site, notifyOn: makeKinds(random) };
    case 13:
    case 14:
      return reuseName(random, site, at, taste);
    case 8:
      return random.chance(0.4)
        ? changeIdentity(random, site)
        : withBox({ knowsPassword: random.chance(0.7) });
    default:
      return withBox({ otherwise: random.weighted<Action>({ deliver: 4, ignore: 1, hold: 1 }) });
  }
}

/** Another rule under an old name: other conditions, and other consequences. */
export function reuseName(random: Random, site: Site, at: number, taste: Taste): Site {
  const { routes = [] } = site.boxes[at] ?? {};
  const index = routes.findIndex(({ name }) => name !== undefined);
  const { name } = routes[index] ?? {};
  const other = makeRoute(random, { ...taste, names: 1 });
  const route = name === undefined ? other : { ...other, name };
  return withBoxAt(site, at, { routes: index < 0 ? [route, ...routes] : routes.with(index, route) });
}

/** Changes a label, a spelling or an owner: what is delivered belongs to the same mailbox, service and owner as before. */
export function changeIdentity(random: Random, site: Site): Site {
  const { boxes } = site;
  const at = random.int(boxes.length);
  const box = boxes[at] as Box;
  const [first = [], second = []] = ADDRESSES;
  switch (random.int(8)) {
    case 0:
    case 1:
      return withBoxAt(site, at, { name: box.name === undefined ? "orders" : `${box.name}-2` });
    case 2: {
      const { name: _, ...nameless } = box;
      return {
        ...site,
        boxes: boxes.with(at, box.name === undefined ? { ...box, name: "invoices" } : nameless),
      };
    }
    case 3: {
      // Two names are swapped.
      const names = boxes.map(({ name, email }) => name ?? email);
      return {
        ...site,
        boxes: boxes.map((each, index) => ({ ...each, name: names[(index + 1) % names.length] ?? "one" })),
      };
    }
    case 4:
      return { ...site, addresses: [random.pick(first), random.pick(second)] };
    case 5:
      return boxes.length > 1
        ? { ...site, boxes: boxes.toSpliced(at, 1) }
        : withBoxAt(site, at, { email: THIRD_BOX });
    case 6: {
      // Its own hand-off comes or goes.
      const { handoff, ...common } = box;
      const own = {
        ...box,
        handoff: { command: [PROGRAMS[box.email.toLowerCase() as typeof BOX] ?? PROGRAMS.urgent] },
      };
      return { ...site, boxes: boxes.with(at, handoff === undefined ? own : common) };
    }
    default: {
      const { inbox, ...common } = box;
      return {
        ...site,
        boxes: boxes.with(at, inbox === undefined ? { ...box, inbox: OTHER_INBOX } : common),
      };
    }
  }
}

function withBoxAt(site: Site, at: number, more: Partial<Box>): Site {
  const box = { ...(site.boxes[at] as Box), ...more };
  return { ...site, boxes: site.boxes.with(at, { ...box, routes: withNames(box.routes) }) };
}

export function swapAcknowledgement(site: Site): Site {
  const { acknowledgement } = site.handoff;
  return {
    ...site,
    handoff: { ...site.handoff, acknowledgement: acknowledgement === "ok.txt" ? "seen.txt" : "ok.txt" },
  };
}

export function toggleCommand(site: Site): Site {
  const { command, ...others } = site.handoff;
  return { ...site, handoff: command ? others : { ...others, command: [PROGRAMS.common] } };
}
