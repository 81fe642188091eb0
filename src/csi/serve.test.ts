import { execFileSync } from 'node:child_process'
import { access, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type SocketFixture, startSocketFixture } from './socket.fixture.ts'

let fixture: SocketFixture
afterEach(() => fixture.remove())

describe('serveDriver', () => {
  it("replaces a killed driver's socket", async () => {
    fixture = await startSocketFixture()
    const script = `require('net').createServer().listen(${JSON.stringify(fixture.path)}, () => process.kill(process.pid, 'SIGKILL'))`
    expect(() => execFileSync(process.execPath, ['-e', script])).toThrow()
    await access(fixture.path)
    await fixture.serve()
    await fixture.driver.identity.probe({})
  })

  it('does not replace a socket on which another process listens', async () => {
    fixture = await startSocketFixture()
    const listener = createServer().listen(fixture.path)
    await new Promise((resolve) => listener.once('listening', resolve))
    await expect(fixture.serve()).rejects.toThrow(/another process listens on it/)
    await new Promise((resolve) => listener.close(resolve))
  })

  it('does not replace a regular file at the socket path', async () => {
    fixture = await startSocketFixture()
    await writeFile(fixture.path, 'data')
    await expect(fixture.serve()).rejects.toThrow(/not a socket/)
  })

  it('removes the socket when the driver stops', async () => {
    fixture = await startSocketFixture()
    await fixture.serve()
    await access(fixture.path)
    await fixture.stop()
    await expect(access(fixture.path)).rejects.toThrow(/ENOENT/)
  })
})
