"""Carries TCP connections from a listening socket of the host into a node's network namespace."""

import asyncio


def serve(listener, host, port):
    """Runs for ever. The listener was made in the host's namespace and stays there."""
    asyncio.run(_serve(listener, host, port))


async def _serve(listener, host, port):
    async def connect(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        for stream in (writer, far_writer):
            stream.close()

    server = await asyncio.start_server(connect, sock=listener)
    await server.serve_forever()


async def _copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        # One direction broke: end the other too, so that no half of a dead connection stays.
        writer.transport.abort()
