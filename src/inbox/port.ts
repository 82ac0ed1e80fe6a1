/**
 * What other folders of the source know of the inboxes: their folders, the room on their disk, and the removal of delivered
 * folders.
 *
 * Mailboxes may have inboxes of their own beside the common one. All of them are on the file system of the work folder,
 * because a delivery is one rename.
 */

import type { openInbox } from "./inbox.ts";

export type Inbox = Awaited<ReturnType<typeof openInbox>>;
