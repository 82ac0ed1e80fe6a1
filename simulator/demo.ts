/** The transfers of the demo. Each shows another case. */
import type { Scenario, TransferPlan } from "./scenario.ts";

export const DEMO_MAILBOX = "orders@example.com";
/** The password rule in the demo's configuration. */
export const SUPPLIER = { sender: "*@supplier.example", password: "Sunny+Harbour%42" };
/** Waits until its password is supplied. */
export const WAITING_ID = "20260301-080400-waits4pw";
export const WAITING_PASSWORD = "Quiet-Meadow:77";
/** Its sender revokes it. */
export const REVOKED_ID = "20260301-080600-takenbck";

const MEBIBYTE = 1024 * 1024;

export const demoScenario: Scenario = {
  transfers: [
    supplier("20260301-080000-fewfiles", "Order 4711", {
      message: "Good morning,\n\nplease find the papers of order 4711 attached.\n\nAnna Schmidt\n",
      files: [
        { name: "confirmation.txt", text: "Order 4711 is confirmed.\n" },
        { name: "delivery-note.csv", text: "position;article;quantity\n1;Bracket M8;250\n" },
        { name: "../../etc/cron.d/job", text: "A name with a path, which is made harmless\n" },
      ],
    }),
    supplier("20260301-080100-onelarge", "Drawings of the new hall", {
      files: [{ name: "drawings.tar", generate: { bytes: 192 * MEBIBYTE } }],
    }),
    supplier("20260301-080200-manysmal", "Scans of May", {
      files: Array.from({ length: 60 }, (_, at) => ({
        name: `scan-${String(at + 1).padStart(2, "0")}.pdf`,
        generate: { bytes: 20_000 },
      })),
    }),
    supplier("20260301-080300-tampered", "Invoice", {
      files: [{ name: "invoice.pdf", text: "Please pay 100.00\n", csvChecksum: "wrong" }],
    }),
    {
      from: "lab@clinic.example",
      to: [DEMO_MAILBOX],
      subject: "Results",
      trackingId: WAITING_ID,
      password: WAITING_PASSWORD,
      files: [{ name: "results.csv", text: "sample;value\nA-1;0.42\n" }],
    },
    {
      from: "fair@fair.example",
      to: [DEMO_MAILBOX],
      subject: "Your ticket",
      trackingId: "20260301-080500-openlink",
      passwordMode: "NONE",
      files: [{ name: "ticket.txt", text: "Hall 7, gate 3\n" }],
    },
    {
      from: "sales@rival.example",
      to: [DEMO_MAILBOX],
      subject: "Sent by mistake",
      trackingId: REVOKED_ID,
      files: [{ name: "prices.xlsx", generate: { bytes: 50_000 } }],
    },
  ],
  faults: [
    // The speed of a typical line, with one interruption.
    {
      on: "file",
      file: "drawings.tar",
      times: "always",
      does: { kind: "drip", bytes: MEBIBYTE, pauseMs: 12 },
    },
    { on: "file", file: "drawings.tar", does: { kind: "reset", afterBytes: 80 * MEBIBYTE } },
  ],
};

function supplier(
  trackingId: string,
  subject: string,
  rest: Pick<TransferPlan, "files" | "message">,
): TransferPlan {
  const { password } = SUPPLIER;
  return { from: "anna@supplier.example", to: [DEMO_MAILBOX], trackingId, subject, password, ...rest };
}
