// Keeps the page's own files, so that it works without a network.
const version = "VERSION";
const files = ["FILES"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(version).then((cache) => cache.addAll(files)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const others = (names) => Promise.all(names.filter((name) => name !== version).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(others).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const kept = () => caches.open(version).then((cache) => cache.match(event.request, { ignoreSearch: true }));
  event.respondWith(kept().then((found) => found ?? fetch(event.request)));
});
