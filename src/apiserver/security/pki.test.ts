import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { writePrivateFile } from '../../base/files.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { loadOrCreatePki, type Pki } from './pki.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const FILES_IN_ORDER = [
  'ca.key',
  'ca.crt',
  'serving.key',
  'serving.crt',
  'admin.key',
  'admin.crt',
  'viewer.key',
  'viewer.crt',
  'tokens.json',
]

function aDirectory(): string {
  const root = mkdtempSync(join(tmpdir(), 'stowage-pki-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  return join(root, 'data', 'pki')
}
const start = (dir: string, wants: Partial<Parameters<typeof loadOrCreatePki>[0]> = {}) =>
  loadOrCreatePki({ dir, clock: manualClock(), hostname: 'harbour', ...wants })

const read = (pem: string) => new X509Certificate(pem)
const modeOf = (path: string) => statSync(path).mode & 0o777
const filesWritten = (pki: Pki) => pki.written.map(({ file }) => file)
const withoutReport = ({ written: _, ...material }: Pki) => material

function expectSound(pki: Pki) {
  const ca = read(pki.caCert)
  for (const { cert, key } of [{ cert: pki.servingCert, key: pki.servingKey }, pki.admin, pki.viewer]) {
    expect(read(cert).checkIssued(ca)).toBe(true)
    expect(read(cert).verify(ca.publicKey)).toBe(true)
    expect(createPublicKey(key).equals(read(cert).publicKey)).toBe(true)
  }
}

describe('the first start', () => {
  it('SYS-9 creates a CA, a serving certificate, two client certificates and two tokens', async () => {
    const pki = await start(aDirectory())
    expectSound(pki)
    expect(filesWritten(pki)).toEqual(FILES_IN_ORDER)
    expect(read(pki.caCert).ca).toBe(true)
    expect(read(pki.admin.cert).subject).toBe('O=system:masters\nCN=stowage-admin')
    expect(read(pki.viewer.cert).subject).toBe('O=stowage:viewers\nCN=stowage-viewer')
    expect(pki.tokens).toEqual([
      { token: pki.admin.token, user: 'stowage-admin', groups: ['system:masters'] },
      { token: pki.viewer.token, user: 'stowage-viewer', groups: ['stowage:viewers'] },
    ])
    for (const { token } of pki.tokens) expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    expect(pki.admin.token).not.toBe(pki.viewer.token)
  })

  it('issues the serving certificate for local, in-cluster and configured hosts, and the name of the machine', async () => {
    const serving = read((await start(aDirectory(), { hosts: ['Store.Example', '192.0.2.7'] })).servingCert)
    const names = ['localhost', 'harbour', 'stowage', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']
    for (const name of [...names, 'store.example']) expect(serving.checkHost(name)).toBe(name)
    for (const address of ['127.0.0.1', '::1', '192.0.2.7']) expect(serving.checkIP(address)).toBe(address)
  })

  it('issues the CA for ten years and the others for one, slightly backdated', async () => {
    const nowMs = manualClock().nowMs()
    const pki = await start(aDirectory())
    expect(Date.parse(read(pki.caCert).validTo)).toBe(nowMs + 3_650 * DAY_MS)
    for (const cert of [pki.servingCert, pki.admin.cert, pki.viewer.cert]) {
      expect(Date.parse(read(cert).validTo)).toBe(nowMs + 365 * DAY_MS)
      expect(Date.parse(read(cert).validFrom)).toBe(nowMs - 5 * 60_000)
    }
  })

  it('SYS-9 makes the directory and its files private', async () => {
    const dir = aDirectory()
    await start(dir)
    expect(modeOf(dir)).toBe(0o700)
    expect(readdirSync(dir).sort()).toEqual([...FILES_IN_ORDER].sort())
    for (const file of FILES_IN_ORDER) expect(modeOf(join(dir, file))).toBe(0o600)
  })

  it('ignores an invalid machine name, and rejects an invalid host', async () => {
    expectSound(await start(aDirectory(), { hostname: 'my_laptop!' }))
    await expect(start(aDirectory(), { hosts: ['https://store:7443'] })).rejects.toThrow(
      'Cannot issue a serving certificate for "https://store:7443": it is neither a DNS name nor an IP address.',
    )
  })
})

describe('a later start', () => {
  it('reuses everything and writes nothing', async () => {
    const dir = aDirectory()
    const first = await start(dir)
    const second = await start(dir)
    expect(second.written).toEqual([])
    expect(withoutReport(second)).toEqual(withoutReport(first))
  })

  it('makes the directory private again', async () => {
    const dir = aDirectory()
    await start(dir)
    chmodSync(dir, 0o755)
    await start(dir)
    expect(modeOf(dir)).toBe(0o700)
  })

  it('reissues the serving certificate for a new host, with the same key and CA', async () => {
    const dir = aDirectory()
    const first = await start(dir)
    const second = await start(dir, { hosts: ['192.0.2.7'] })
    expect(second.written).toEqual([{ file: 'serving.crt', because: 'it did not include the host 192.0.2.7' }])
    expect(read(second.servingCert).checkIP('192.0.2.7')).toBe('192.0.2.7')
    expect(second.servingKey).toBe(first.servingKey)
    expect(second.caCert).toBe(first.caCert)
    expectSound(second)
  })

  it('does not recreate a token that was removed from tokens.json', async () => {
    const dir = aDirectory()
    const { admin } = await start(dir)
    const kept = [{ token: admin.token!, user: 'stowage-admin', groups: ['system:masters'] }]
    writeFileSync(join(dir, 'tokens.json'), JSON.stringify({ tokens: kept }))
    const pki = await start(dir)
    expect(pki.tokens).toEqual(kept)
    expect(pki.viewer.token).toBeUndefined()
  })
})

describe('renewal', () => {
  it('keeps certificates until thirty days before they expire', async () => {
    const dir = aDirectory()
    const clock = manualClock()
    await start(dir, { clock })
    await clock.advance(335 * DAY_MS)
    expect((await start(dir, { clock })).written).toEqual([])
    await clock.advance(1_000)
    expect(filesWritten(await start(dir, { clock }))).toEqual(['serving.crt', 'admin.crt', 'viewer.crt'])
  })

  it('reissues expired certificates from the same CA, for the same keys', async () => {
    const dir = aDirectory()
    const clock = manualClock()
    const first = await start(dir, { clock })
    await clock.advance(2 * 365 * DAY_MS)
    const second = await start(dir, { clock })
    expectSound(second)
    expect(second.caCert).toBe(first.caCert)
    expect(second.admin.key).toBe(first.admin.key)
    expect(Date.parse(read(second.admin.cert).validTo)).toBe(clock.nowMs() + 365 * DAY_MS)
    expect(second.written[1]).toEqual({
      file: 'admin.crt',
      because: `it expires at ${read(first.admin.cert).validTo}`,
    })
  })

  it('renews the CA before a certificate could outlive it; existing certificates stay valid', async () => {
    const dir = aDirectory()
    const clock = manualClock()
    const first = await start(dir, { clock })
    await clock.advance((3_650 - 394) * DAY_MS)
    const second = await start(dir, { clock })
    expect(second.caCert).not.toBe(first.caCert)
    expectSound(second)
    expect(read(second.servingCert).verify(read(first.caCert).publicKey)).toBe(true)
    expect(read(second.servingCert).checkIssued(read(first.caCert))).toBe(true)
    expect(read(first.admin.cert).checkIssued(read(second.caCert))).toBe(true)
  })

  it('replaces certificates that are not valid yet', async () => {
    const dir = aDirectory()
    await start(dir, { clock: manualClock(Date.UTC(2040, 0, 1)) })
    const pki = await start(dir)
    expect(filesWritten(pki)).toEqual(['ca.crt', 'serving.crt', 'admin.crt', 'viewer.crt'])
    expectSound(pki)
  })
})

describe('an interrupted start', () => {
  for (const [index, file] of FILES_IN_ORDER.entries()) {
    it(`is completed by the next after a crash while writing ${file}`, async () => {
      const dir = aDirectory()
      const done = FILES_IN_ORDER.slice(0, index)
      await expect(start(dir, { writeFile: crashingAtWrite(index) })).rejects.toThrow('crash')
      expect(readdirSync(dir).sort()).toEqual([...done, `${file}.tmp`].sort())
      const before = done.map((name) => readFileSync(join(dir, name), 'utf8'))

      const pki = await start(dir)
      expectSound(pki)
      expect(filesWritten(pki)).toEqual(FILES_IN_ORDER.slice(index))
      expect(done.map((name) => readFileSync(join(dir, name), 'utf8'))).toEqual(before)
      expect(readdirSync(dir).sort()).toEqual([...FILES_IN_ORDER].sort())
      expect((await start(dir)).written).toEqual([])
    })
  }

  for (const [index, file] of ['ca.crt', 'serving.crt', 'admin.crt', 'viewer.crt'].entries()) {
    it(`is completed by the next after a crash while renewing ${file}`, async () => {
      const dir = aDirectory()
      const clock = manualClock()
      const first = await start(dir, { clock })
      await clock.advance(20 * 365 * DAY_MS)
      await expect(start(dir, { clock, writeFile: crashingAtWrite(index) })).rejects.toThrow('crash')

      const pki = await start(dir, { clock })
      expectSound(pki)
      expect(filesWritten(pki)[0]).toBe(file)
      expect(pki.admin.key).toBe(first.admin.key)
      expect((await start(dir, { clock })).written).toEqual([])
    })
  }

  /** Leaves half a temporary file behind, as a crash in the middle of writePrivateFile does. */
  function crashingAtWrite(crashAt: number) {
    let writes = 0
    return async (path: string, text: string) => {
      if (writes++ < crashAt) return writePrivateFile(path, text)
      writeFileSync(`${path}.tmp`, text.slice(0, text.length / 2))
      throw new Error('crash')
    }
  }
})

describe('a damaged directory', () => {
  it.each([
    ['ca.key', 'it is not a private key in PEM. Restore it from a backup, or remove '],
    ['ca.crt', 'it is not a certificate in PEM. Restore it from a backup, or remove '],
    ['serving.key', 'it is not a private key in PEM. Remove it and start again'],
    ['serving.crt', 'it is not a certificate in PEM. Remove it and start again'],
    ['admin.crt', 'it is not a certificate in PEM. Remove it and start again'],
    ['viewer.key', 'it is not a private key in PEM. Remove it and start again'],
    ['tokens.json', 'it is not JSON. Correct it, or remove it and start again'],
  ])('reports that %s is unusable and what to do', async (file, message) => {
    for (const rubbish of ['', 'rubbish', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n']) {
      const dir = aDirectory()
      await start(dir)
      writeFileSync(join(dir, file), rubbish)
      await expect(start(dir)).rejects.toThrow(`Cannot use ${join(dir, file)}: ${message}`)
    }
  })

  it.each(FILES_IN_ORDER.slice(2))('recreates %s after it was removed', async (file) => {
    const dir = aDirectory()
    const first = await start(dir)
    rmSync(join(dir, file))
    const second = await start(dir)
    expectSound(second)
    expect(second.caCert).toBe(first.caCert)
    expect(filesWritten(second)).toEqual(file.endsWith('.key') ? [file, file.replace('.key', '.crt')] : [file])
  })

  it('does not create a new CA if the key of the old one is missing', async () => {
    const dir = aDirectory()
    await start(dir)
    rmSync(join(dir, 'ca.key'))
    await expect(start(dir)).rejects.toThrow(`Cannot use ${join(dir, 'ca.key')}: it is missing, though ca.crt exists.`)
  })

  it('rejects a CA certificate that does not match its key', async () => {
    const [dir, other] = [aDirectory(), aDirectory()]
    await start(dir)
    writeFileSync(join(dir, 'ca.crt'), (await start(other)).caCert)
    await expect(start(dir)).rejects.toThrow('ca.crt: it does not belong to the key in ca.key.')
  })

  it('rejects a key of another type', async () => {
    const dir = aDirectory()
    await start(dir)
    const { privateKey } = generateKeyPairSync('ed25519')
    writeFileSync(join(dir, 'admin.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await expect(start(dir)).rejects.toThrow('admin.key: its key is not an ECDSA P-256 key.')
  })

  it('reissues a certificate of another CA or with another subject', async () => {
    const [dir, other] = [aDirectory(), aDirectory()]
    const [first, foreign] = [await start(dir), await start(other)]
    writeFileSync(join(dir, 'serving.key'), foreign.servingKey)
    writeFileSync(join(dir, 'serving.crt'), foreign.servingCert)
    writeFileSync(join(dir, 'viewer.key'), first.admin.key)
    writeFileSync(join(dir, 'viewer.crt'), first.admin.cert)
    const second = await start(dir)
    expect(second.written).toEqual([
      { file: 'serving.crt', because: 'it was issued by another CA' },
      { file: 'viewer.crt', because: 'it had another subject' },
    ])
    expectSound(second)
  })

  it.each([
    ['[]', 'it has no list "tokens"'],
    ['null', 'it has no list "tokens"'],
    ['{"tokens":[{"token":"","user":"ann","groups":[]}]}', 'tokens[0] must have a token, a user and a list of groups'],
    ['{"tokens":[{"token":"t","user":"ann"}]}', 'tokens[0] must have a token, a user and a list of groups'],
    ['{"tokens":[null]}', 'tokens[0] must have a token, a user and a list of groups'],
    [
      '{"tokens":[{"token":"t","user":"ann","groups":[]},{"token":"t","user":"bob","groups":[]}]}',
      'tokens[1] repeats an earlier token',
    ],
  ])('rejects tokens.json with the content %s', async (text, why) => {
    const dir = aDirectory()
    await start(dir)
    writeFileSync(join(dir, 'tokens.json'), text)
    await expect(start(dir)).rejects.toThrow(`tokens.json: ${why}.`)
  })
})
