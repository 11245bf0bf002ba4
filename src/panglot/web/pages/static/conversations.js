// Conversations, stored in this browser and nowhere else.

import { phrase } from "./language.js";

const MOST = 50;

/** The conversations with one model, newest first: `{id, when, system, options, messages}`. */
export class Conversations {
  constructor(model) {
    this.key = `panglot chat ${location.pathname} ${model}`;
    this.all = [];
    try {
      const stored = JSON.parse(localStorage.getItem(this.key) ?? "[]");
      if (Array.isArray(stored)) this.all = stored.filter((one) => Array.isArray(one?.messages) && typeof one.id === "string");
    } catch {
      // Storage is switched off, or holds something else: the page begins with nothing.
    }
  }

  begin(like) {
    return { id: crypto.randomUUID?.() ?? String(Math.random()), when: Date.now(), system: like?.system ?? "", options: { ...like?.options }, messages: [] };
  }

  save(conversation) {
    conversation.when = Date.now();
    this.all = [conversation, ...this.all.filter((one) => one.id !== conversation.id)].slice(0, MOST);
    this.write();
  }

  remove(conversation) {
    this.all = this.all.filter((one) => one.id !== conversation.id);
    this.write();
  }

  /** Store all; where that is too much, without the oldest. */
  write() {
    for (let kept = this.all.length; kept >= 0; kept = kept > 1 ? Math.floor(kept / 2) : kept - 1) {
      try {
        localStorage.setItem(this.key, JSON.stringify(this.all.slice(0, kept)));
        return;
      } catch (error) {
        if (error.name !== "QuotaExceededError") return;
      }
    }
  }
}

/** What a conversation is called: how it begins. */
export function titleOf(conversation) {
  const first = conversation.messages.find((message) => message.role === "user");
  return textOf(first?.content).trim().split("\n")[0].slice(0, 60) || phrase("new_chat");
}

/** The text of a message, whose content may be a list of parts. */
export function textOf(content) {
  if (Array.isArray(content)) return content.filter((part) => part.type === "text").map((part) => part.text).join("\n");
  return content ?? "";
}

/** The pictures of a message, as addresses of data. */
export function picturesOf(content) {
  return Array.isArray(content) ? content.filter((part) => part.type === "image_url").map((part) => part.image_url.url) : [];
}
