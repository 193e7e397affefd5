"""The dashboard: web pages that show an engine and change it, for people with a browser.

    guard        which Host and Origin headers are ours: no other site, and no name that was bent to us, gets in
    sessions     one-time links, sessions, their tokens against forged requests, a limit on guesses
    router       the table of paths, and what kind each is: a page, a change, a stream, a socket
    visit        one request in the words of a page: who asks, what for, and how to answer
    rendering    templates with what they may use
    assets       the script, style and pictures that pages need
    live         what happens in the engine, told to all who look
    transfers    pulls and pushes that go on when the browser leaves
    buildkit     what the builder tells of its builds; build_steps: these as people look at them
    steps        what an image is made of; drawing: pictures of networks and of the disk
    sampling     what containers use, measured once for all who look, and the last hour of it
    server       takes each request from all these rules to its page, and errors to a page that says what is wrong
    pages/       one module for each part of the site, with its table of paths
    templates/   HTML, by jinja2
    static/      script and style, as browsers get them: there is no build step

It speaks with the engine through the library's client and knows nothing else of it, so the same code serves inside the
daemon (`husk serve --dashboard`) and beside one (`husk dashboard`). Nothing of it is loaded unless it is asked for.
`docs/dashboard.md` tells how a page is made.
"""
