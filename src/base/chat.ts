/**
 * Messages for chat systems. Text from senders only goes where the system looks for no markup, so it can neither link nor
 * mention anybody: into rich text without Markdown, or into a block of code.
 */
import { escapeJson } from "./phrases.ts";

export const CHAT_FORMATS = ["slack", "mattermost", "teams"] as const;

export type ChatFormat = (typeof CHAT_FORMATS)[number];

export interface ChatMessage {
  /** Without text from senders. */
  readonly title: string;
  /** May quote senders. Too long a text is cut. */
  readonly text: string;
  readonly footer: string;
  readonly links: readonly ChatLink[];
}

export interface ChatLink {
  /** Replaced unless it has only letters, digits, dots and hyphens. */
  readonly label: string;
  readonly url: string;
}

// A message within these limits is below 28 KB, which Teams takes. Mattermost would split a longer one within the code.
const MAX_CHARACTERS = 3_000;
const MAX_LINES = 60;
const MAX_LINKS = 10;
const MAX_URL_CHARACTERS = 500;

/** JSON for an incoming webhook of the system. */
export function formatChat(format: ChatFormat, { title, text, footer, links }: ChatMessage): string {
  const usable = links.filter(({ url }) => url.length <= MAX_URL_CHARACTERS);
  const shown = usable.slice(0, MAX_LINKS).map(({ label, url }) => ({ label: plainLabel(label), url }));
  const message = { title, text: `${cut(text)}\n\n${footer}`, links: shown };
  return escapeJson(JSON.stringify(BODIES[format](message)));
}

const BODIES: Readonly<Record<ChatFormat, (message: Omit<ChatMessage, "footer">) => object>> = {
  /** Slack shows `text` where it shows no blocks, such as in a notification of the desktop. */
  slack: ({ title, text, links }) => ({
    text: escapeSlack(title),
    blocks: [
      {
        type: "rich_text",
        elements: [
          section([{ type: "text", text: title, style: { bold: true } }]),
          { type: "rich_text_preformatted", elements: [{ type: "text", text }] },
          ...links.map(({ label, url }) => section([{ type: "link", text: label, url }])),
        ],
      },
    ],
  }),
  /** Mattermost ignores mentions and links in a block of code. */
  mattermost: ({ title, text, links }) => ({
    text: [
      `**${title}**`,
      "```text",
      text.replaceAll("`", "'"),
      "```",
      links.map(({ label, url }) => `[${label}](${url})`).join(" · "),
    ].join("\n"),
  }),
  /** An adaptive card. A `TextRun` has no Markdown. */
  teams: ({ title, text, links }) => ({
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          msteams: { width: "Full" },
          body: [
            richText({ text: title, weight: "Bolder" }),
            ...text
              .split(/\n+/)
              .map((line) => ({ ...richText({ text: line, fontType: "Monospace" }), spacing: "Small" })),
            ...links.map(({ label, url }) =>
              richText({ text: label, selectAction: { type: "Action.OpenUrl", url } }),
            ),
          ],
        },
      },
    ],
  }),
};

function section(elements: readonly object[]): object {
  return { type: "rich_text_section", elements };
}

function richText(run: object): object {
  return { type: "RichTextBlock", inlines: [{ type: "TextRun", ...run }] };
}

function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function plainLabel(label: string): string {
  return /^[A-Za-z0-9.-]{1,100}$/.test(label) ? label : "Transfer";
}

function cut(text: string): string {
  const kept = text.split("\n").slice(0, MAX_LINES).join("\n");
  if (kept === text && text.length <= MAX_CHARACTERS) return text;
  return `${kept.slice(0, MAX_CHARACTERS).toWellFormed()}\n… and more, which does not fit into this message.`;
}
