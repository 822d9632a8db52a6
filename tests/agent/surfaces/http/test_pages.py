"""The page that describes the API, and the origins whose pages may ask."""


async def test_the_description_loads_nothing_from_elsewhere(site) -> None:
    page = await site.client.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "/v1/chat/completions" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "src=" not in page.text


async def test_a_browser_may_ask_from_the_origins_that_are_set(serve) -> None:
    site = await serve(http_cors="https://chat.example.org")
    headers = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    for origin, status in (("https://chat.example.org", 200), ("https://other.example.org", 400)):
        asked = headers | {"origin": origin}
        preflight = await site.client.options("/v1/chat/completions", headers=asked)
        assert preflight.status_code == status
        assert (preflight.headers.get("access-control-allow-origin") == origin) == (status == 200)
    refused = await site.client.get("/v1/models", headers={"origin": "https://chat.example.org"})
    assert refused.status_code == 401  # a key is needed all the same
    assert refused.headers["access-control-allow-origin"] == "https://chat.example.org"


async def test_a_page_of_another_origin_reads_nothing_while_there_is_no_key(serve) -> None:
    """It could not show one, so on a server that needs none everybody's browser would let it read."""
    site = await serve(http_cors="https://chat.example.org *", loopback=True)
    foreign = {"origin": "https://chat.example.org"}
    for sent in (foreign, foreign | {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        for path in ("/v1/models", "/api/users/ana/memories", "/metrics"):
            refused = await site.client.get(path, headers=sent)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
            assert "another site, which needs a key" in refused.json()["error"]["message"]
    own = {"origin": f"http://{site.client.base_url.netloc.decode()}"}
    for sent in (own, {}, foreign | {"sec-fetch-site": "same-origin"}):
        assert (await site.client.get("/v1/models", headers=sent)).status_code == 200
