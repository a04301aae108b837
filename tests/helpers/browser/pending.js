// What a page can wait for, each with a function that calls `next` when it is over. Read by `pending.py`.
({
  "timer"(next) { setTimeout(next, 180) },
  "late timer"(next) { setTimeout(next, 900) },
  "short timer"(next) { setTimeout(next) },
  "interval"(next) { let left = 3; const id = setInterval(() => { if (!--left) { clearInterval(id); next() } }, 90) },
  "frames"(next) { let left = 10; const each = () => --left ? requestAnimationFrame(each) : next(); each() },
  "idle"(next) { let left = 12; const each = () => --left ? requestIdleCallback(each) : next(); each() },
  "task"(next) { scheduler.postTask(next, { delay: 600 }) },
  "yields"(next) {
    const each = async () => { for (let left = 24000; left; left--) await scheduler.yield(); next() };
    scheduler.postTask(each, { priority: 'background' })
  },
  "messages"(next) {
    let left = 12000; const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => --left ? port2.postMessage(1) : next(); port2.postMessage(1)
  },
  "window messages"(next) { let left = 10; onmessage = () => --left ? postMessage(1) : next(); postMessage(1) },
  "transition"(next) {
    box.style.transition = 'width .3s'; box.getBoundingClientRect();
    box.ontransitionend = () => { box.ontransitionend = null; next() }; box.style.width = `${box.offsetWidth + 40}px`
  },
  "delayed transition"(next) {
    box.style.height = `${box.offsetHeight}px`; box.style.transition = 'height .1s .3s';
    box.getBoundingClientRect();
    box.ontransitionend = () => { box.ontransitionend = null; next() }; box.style.height = `${box.offsetHeight + 40}px`
  },
  "animation"(next) {
    box.onanimationend = () => { box.style.animation = ''; box.onanimationend = null; next() };
    box.style.animation = 'fade .3s'
  },
  "animation by script"(next) { box.animate([{ opacity: 0 }, { opacity: 1 }], 300).onfinish = next },
  "finished animation"(next) {
    box.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 100, delay: 200 }).finished.then(next)
  },
  "animation in a shadow"(next) {
    const host = document.createElement('p'); host.attachShadow({ mode: 'open' }).innerHTML = '<b>x</b>';
    document.body.append(host); host.shadowRoot.firstChild.animate([{ opacity: 0 }, { opacity: 1 }], 300).onfinish = next
  },
  "fetch"(next) { fetch('/slow').then(each => each.text()).then(next) },
  "request"(next) { const asked = new XMLHttpRequest(); asked.onload = next; asked.open('GET', '/slow'); asked.send() },
  "stream"(next) {
    (async () => { const reader = (await fetch('/drip')).body.getReader();
    while (!(await reader.read()).done); next() })()
  },
  "image"(next) { const image = new Image(); image.onload = next; image.src = `/picture?${Math.random()}` },
  "decoded image"(next) {
    const image = new Image(); image.src = `/picture?${Math.random()}`; image.decode().then(next)
  },
  "script"(next) {
    const script = document.createElement('script'); script.src = `/script?${Math.random()}`; globalThis.loaded = next;
    document.body.append(script)
  },
  "module"(next) { globalThis.loaded = next; import(`/script?${Math.random()}`) },
  "style"(next) {
    const link = document.createElement('link'); link.rel = 'stylesheet'; link.href = `/style?${Math.random()}`;
    link.onload = next; document.head.append(link)
  },
  "font"(next) { new FontFace('x', `url(/slow?${Math.random()})`).load().catch(next) },
  "frame"(next) {
    const frame = document.createElement('iframe'); frame.src = '/slow'; frame.onload = next;
    document.body.append(frame)
  },
  "written frame"(next) {
    const frame = document.createElement('iframe'); frame.srcdoc = `<script>
    setTimeout(() => parent.postMessage(1), 200)<\/script>`; onmessage = next; document.body.append(frame)
  },
  "worker"(next) { const own = worker('for (let at = 0; at < 1e9; at++); postMessage(1)'); own.onmessage = next },
  "asked worker"(next) {
    const own = worker('onmessage = () => { for (let at = 0; at < 1e7; at++); postMessage(1) }'); let left = 40;
    own.onmessage = () => --left ? own.postMessage(1) : next(); own.postMessage(1)
  },
  "shared worker"(next) {
    const address = code(`let count = 0;
    onconnect = ({ ports }) => { if (count++) for (let at = 0; at < 1e9; at++); ports[0].postMessage(1) }`);
    new SharedWorker(address).port.onmessage = () => setTimeout(() => { new SharedWorker(address).port.onmessage = next }, 400)
  },
  "channel of a worker"(next) {
    const { port1, port2 } = new MessageChannel(); port1.onmessage = next;
    worker('onmessage = ({ ports }) => setTimeout(() => ports[0].postMessage(1), 100)').postMessage(1, [port2])
  },
  "broadcast"(next) {
    const [one, other] = [1, 2].map(() => new BroadcastChannel('x')); let left = 250;
    one.onmessage = () => one.postMessage(1); other.onmessage = () => --left ? other.postMessage(1) : next(); other.postMessage(1)
  },
  "waiting"(next) {
    const { buffer } = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    Atomics.waitAsync(new Int32Array(buffer), 0, 0, 160).value.then(next)
  },
  "events"(next) { const source = new EventSource('/events'); source.onmessage = () => { source.close(); next() } },
  "database"(next) {
    const opened = indexedDB.open(`${Math.random()}`, 1); opened.onupgradeneeded = () => opened.result.createObjectStore('s');
    opened.onsuccess = () => { let left = 20; const store = () => opened.result.transaction('s', 'readwrite').objectStore('s');
    const each = () => { if (--left) store().put(1, left).onsuccess = each; else next() }; each() }
  },
  "databases"(next) {
    let left = 8; const name = Math.random();
    const each = () => { if (--left) indexedDB.open(`${name} ${left}`).onsuccess = each; else next() }; each()
  },
  "transaction"(next) {
    const opened = indexedDB.open(`${Math.random()}`, 1); opened.onupgradeneeded = () => opened.result.createObjectStore('s');
    opened.onsuccess = () => { const all = opened.result.transaction('s', 'readwrite');
    for (let at = 0; at < 500; at++) all.objectStore('s').put('x'.repeat(1000), at); all.oncomplete = next }
  },
  "crypto"(next) {
    (async () => { for (let left = 4; left; left--) await crypto.subtle.generateKey({ name: 'RSA-OAEP', modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, true, ['encrypt', 'decrypt']); next() })()
  },
  "bitmap"(next) {
    (async () => { const blob = await picture(); for (let left = 16; left; left--) await createImageBitmap(blob); next() })()
  },
  "picture of a canvas"(next) {
    const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [2000, 2000];
    let left = 12; const each = () => --left ? canvas.toBlob(each) : next(); canvas.toBlob(each)
  },
  "picture off the page"(next) {
    (async () => { for (let left = 6; left; left--) await picture(); next() })()
  },
  "decoded picture"(next) {
    const image = new Image(); image.onload = () => setTimeout(async () => {
    for (let left = 100; left; left--) await image.decode(); next() }, 400);
    picture().then(blob => { image.src = URL.createObjectURL(blob) })
  },
  "local fetch"(next) {
    (async () => { for (let left = 300; left; left--) await fetch('data:,x'); next() })()
  },
  "answer"(next) {
    (async () => { for (let left = 400; left; left--) await new Response(new Blob(['x'.repeat(1e5)])).text(); next() })()
  },
  "local request"(next) {
    let left = 150; const each = () => { if (!--left) return next(); const asked = new XMLHttpRequest(); asked.onload = each;
    asked.open('GET', 'data:,x'); asked.send() }; each()
  },
  "local stream"(next) {
    (async () => { const reader = new Blob(['x'.repeat(1e7)]).stream().getReader(); while (!(await reader.read()).done); next() })()
  },
  "local font"(next) {
    let left = 40; const each = () => --left ? new FontFace('x', 'url(data:,x)').load().catch(each) : next(); each()
  },
  "file"(next) {
    const reader = new FileReader(); reader.onload = next; reader.readAsText(new Blob(['x'.repeat(8e7)]))
  },
  "blob"(next) {
    (async () => { const blob = new Blob(['x'.repeat(1e6)]); for (let left = 150; left; left--) await blob.text(); next() })()
  },
  "lock"(next) {
    navigator.locks.request('x', () => new Promise(done => setTimeout(done, 150)));
    navigator.locks.request('x', () => { next() })
  },
  "locks"(next) {
    (async () => { for (let left = 100; left; left--) await navigator.locks.request('y', () => {}); next() })()
  },
  "cache"(next) {
    (async () => { const all = await caches.open('x'); for (let left = 5; left; left--) await all.put(`/${left}`,
    new Response('x')); next() })()
  },
  "caches"(next) {
    (async () => { for (let left = 200; left; left--) await caches.open(`x${left}`); next() })()
  },
  "storage"(next) {
    (async () => { for (let left = 150; left; left--) await navigator.storage.estimate(); next() })()
  },
  "directory"(next) {
    (async () => { const root = await navigator.storage.getDirectory(); for (let left = 80; left; left--)
    await root.getFileHandle(`f${left}`, { create: true }); next() })()
  },
  "written file"(next) {
    (async () => { const root = await navigator.storage.getDirectory();
    const file = await root.getFileHandle('w', { create: true }), to = await file.createWritable();
    setTimeout(async () => { await to.write('x'.repeat(5e7)); setTimeout(next) }, 300) })()
  },
  "closed files"(next) {
    (async () => { const root = await navigator.storage.getDirectory();
    const file = await root.getFileHandle('c', { create: true });
    for (let left = 60; left; left--) await (await file.createWritable()).close(); next() })()
  },
  "opened file"(next) {
    (async () => { const root = await navigator.storage.getDirectory();
    const file = await root.getFileHandle('o', { create: true }); for (let left = 80; left; left--) await file.getFile(); next() })()
  },
  "permission"(next) {
    (async () => { for (let left = 150; left; left--) await navigator.permissions.query({ name: 'geolocation' });
    next() })()
  },
  "cookie"(next) {
    (async () => { for (let left = 60; left; left--) await cookieStore.set('x', `${left}`); next() })()
  },
  "sound"(next) { new OfflineAudioContext(1, 44100 * 600, 44100).startRendering().then(next) },
  "program"(next) {
    (async () => { for (let left = 7000; left; left--) await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
    next() })()
  },
  "size"(next) {
    const seen = new ResizeObserver(() => { if (box.style.padding) { seen.disconnect(); box.style.padding = ''; next() } });
    seen.observe(box); box.style.padding = '9px'
  },
  "view"(next) {
    const seen = new IntersectionObserver(([{ isIntersecting }]) => { if (isIntersecting) { seen.disconnect(); next() } });
    const low = document.createElement('p'); low.style.marginTop = '3000px'; document.body.append(low); seen.observe(low);
    low.scrollIntoView()
  },
  "view transition"(next) { document.startViewTransition(() => {}).finished.then(next) },
  "scrolling"(next) {
    onscrollend = next; document.body.style.minHeight = '5000px'; scrollTo({ top: scrollY + 300, behavior: 'smooth' })
  },
  "scrolling to an element"(next) {
    onscrollend = next; const low = document.createElement('p'); low.style.marginTop = '3000px'; document.body.append(low);
    low.scrollIntoView({ behavior: 'smooth' })
  },
  "dialog"(next) {
    const dialog = document.createElement('dialog'); document.body.append(dialog); dialog.onclose = next; dialog.showModal();
    dialog.close()
  },
  "details"(next) {
    const details = document.createElement('details'); document.body.append(details); details.ontoggle = next;
    details.open = true
  },
  "popover"(next) {
    const shown = document.createElement('p'); shown.popover = 'auto'; document.body.append(shown);
    shown.ontoggle = () => { shown.remove(); next() }; shown.showPopover()
  },
  "selection"(next) {
    const field = document.createElement('input'); field.value = 'x'; document.body.append(field);
    field.onselect = () => { field.remove(); next() }; field.select()
  },
  "local image"(next) {
    let left = 150; const image = new Image(); image.onload = () => { if (--left) image.src = picture(left); else next() };
    const picture = at => `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='${at}' height='9'></svg>`;
    image.src = picture(left)
  },
  "local script"(next) {
    let left = 30; globalThis.loaded = () => --left ? each() : next();
    const each = () => {
      const script = document.createElement('script'); script.src = 'data:text/javascript,loaded()'; document.body.append(script)
    };
    each()
  },
  "local module"(next) {
    (async () => { for (let left = 3; left; left--) await import(`data:text/javascript,export default ${Math.random()}`); next() })()
  },
  "local style"(next) {
    let left = 30; const each = () => {
      const link = document.createElement('link'); link.rel = 'stylesheet'; link.href = `data:text/css,p { color: black }`;
      link.onload = () => { link.remove(); if (--left) each(); else next() }; document.head.append(link)
    };
    each()
  },
  "local frame"(next) {
    let left = 8; const frame = document.createElement('iframe');
    frame.onload = () => { if (--left) frame.srcdoc = left; else { frame.remove(); next() } }; frame.srcdoc = left; document.body.append(frame)
  },
  "cookie change"(next) {
    cookieStore.onchange = () => { cookieStore.onchange = null; next() }; cookieStore.set('y', `${Math.random()}`)
  },
  "hash"(next) { onhashchange = next; location.hash = Math.random() },
  "back"(next) {
    let left = 30; history.pushState(1, ''); onpopstate = () => {
      if (--left) history.go(left % 2 ? 1 : -1); else { onpopstate = null; next() }
    };
    history.back()
  },
  "navigation"(next) {
    let left = 30; history.pushState(1, '');
    const each = () => --left ? navigation[left % 2 ? 'back' : 'forward']().finished.then(each) : next(); each()
  },
  "abort"(next) { AbortSignal.timeout(200).onabort = next },
  "compressed"(next) {
    new Response(new Blob(['x'.repeat(1e6)]).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer()
    .then(next)
  },
  "microtasks"(next) { (async () => { for (let left = 500; left; left--) await null; next() })() },
})
