// Keeps what the page is made of, so that it works without a network; DIGEST changes with every version of it.
const NAME = "llmfeas-DIGEST";

self.addEventListener("install", (event) => {
  const keep = async () => {
    const { files } = await (await fetch("page.json", { cache: "no-store" })).json();
    await (await caches.open(NAME)).addAll(files);
  };
  event.waitUntil(keep().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    for (const name of await caches.keys()) if (name.startsWith("llmfeas-") && name !== NAME) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(tidy());
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith(
    caches.open(NAME).then(async (kept) => (await kept.match(event.request, { ignoreSearch: true })) ?? fetch(event.request)),
  );
});
