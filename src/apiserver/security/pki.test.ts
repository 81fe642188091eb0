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

function createDirectory(): string {
  const root = mkdtempSync(join(tmpdir(), 'stowage-pki-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  return join(root, 'data', 'pki')
}
const loadPki = (dir: string, overrides: Partial<Parameters<typeof loadOrCreatePki>[0]> = {}) =>
  loadOrCreatePki({ dir, clock: manualClock(), hostname: 'harbour', ...overrides })

const parseCert = (pem: string) => new X509Certificate(pem)
const modeOf = (path: string) => statSync(path).mode & 0o777
const writtenFileNames = (pki: Pki) => pki.writtenFiles.map(({ file }) => file)
const materialOf = ({ writtenFiles: _, signCertificate: __, ...material }: Pki) => material

function expectConsistent(pki: Pki) {
  const ca = parseCert(pki.caCert)
  for (const { cert, key } of [{ cert: pki.servingCert, key: pki.servingKey }, pki.admin, pki.viewer]) {
    expect(parseCert(cert).checkIssued(ca)).toBe(true)
    expect(parseCert(cert).verify(ca.publicKey)).toBe(true)
    expect(createPublicKey(key).equals(parseCert(cert).publicKey)).toBe(true)
  }
}

describe('the first start', () => {
  it('SYS-9 creates a CA, a serving certificate, two client certificates and two tokens', async () => {
    const pki = await loadPki(createDirectory())
    expectConsistent(pki)
    expect(writtenFileNames(pki)).toEqual(FILES_IN_ORDER)
    expect(parseCert(pki.caCert).ca).toBe(true)
    expect(parseCert(pki.admin.cert).subject).toBe('O=system:masters\nCN=stowage-admin')
    expect(parseCert(pki.viewer.cert).subject).toBe('O=stowage:viewers\nCN=stowage-viewer')
    expect(pki.tokens).toEqual([
      { token: pki.admin.token, user: 'stowage-admin', groups: ['system:masters'] },
      { token: pki.viewer.token, user: 'stowage-viewer', groups: ['stowage:viewers'] },
    ])
    for (const { token } of pki.tokens) expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    expect(pki.admin.token).not.toBe(pki.viewer.token)
  })

  it("issues the serving certificate for local, in-cluster and configured hosts and for the machine's hostname", async () => {
    const servingCert = parseCert(
      (await loadPki(createDirectory(), { hosts: ['Store.Example', '192.0.2.7'] })).servingCert,
    )
    const names = ['localhost', 'harbour', 'stowage', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']
    for (const name of [...names, 'store.example']) expect(servingCert.checkHost(name)).toBe(name)
    for (const address of ['127.0.0.1', '::1', '192.0.2.7']) expect(servingCert.checkIP(address)).toBe(address)
  })

  it('issues the CA for ten years and the other certificates for one year, slightly backdated', async () => {
    const nowMs = manualClock().nowMs()
    const pki = await loadPki(createDirectory())
    expect(Date.parse(parseCert(pki.caCert).validTo)).toBe(nowMs + 3_650 * DAY_MS)
    for (const cert of [pki.servingCert, pki.admin.cert, pki.viewer.cert]) {
      expect(Date.parse(parseCert(cert).validTo)).toBe(nowMs + 365 * DAY_MS)
      expect(Date.parse(parseCert(cert).validFrom)).toBe(nowMs - 5 * 60_000)
    }
  })

  it('SYS-9 makes the directory and its files accessible only to the owner', async () => {
    const dir = createDirectory()
    await loadPki(dir)
    expect(modeOf(dir)).toBe(0o700)
    expect(readdirSync(dir).sort()).toEqual([...FILES_IN_ORDER].sort())
    for (const file of FILES_IN_ORDER) expect(modeOf(join(dir, file))).toBe(0o600)
  })

  it('ignores an invalid hostname of the machine, and rejects an invalid configured host', async () => {
    expectConsistent(await loadPki(createDirectory(), { hostname: 'my_laptop!' }))
    await expect(loadPki(createDirectory(), { hosts: ['https://store:7443'] })).rejects.toThrow(
      'Cannot issue a serving certificate for "https://store:7443": it is neither a DNS name nor an IP address.',
    )
  })
})

describe('a later start', () => {
  it('reuses all files and writes none', async () => {
    const dir = createDirectory()
    const firstPki = await loadPki(dir)
    const secondPki = await loadPki(dir)
    expect(secondPki.writtenFiles).toEqual([])
    expect(materialOf(secondPki)).toEqual(materialOf(firstPki))
  })

  it("restores the directory's permissions", async () => {
    const dir = createDirectory()
    await loadPki(dir)
    chmodSync(dir, 0o755)
    await loadPki(dir)
    expect(modeOf(dir)).toBe(0o700)
  })

  it('reissues the serving certificate for a new host, with the same key and CA', async () => {
    const dir = createDirectory()
    const firstPki = await loadPki(dir)
    const secondPki = await loadPki(dir, { hosts: ['192.0.2.7'] })
    expect(secondPki.writtenFiles).toEqual([{ file: 'serving.crt', reason: 'it did not include the host 192.0.2.7' }])
    expect(parseCert(secondPki.servingCert).checkIP('192.0.2.7')).toBe('192.0.2.7')
    expect(secondPki.servingKey).toBe(firstPki.servingKey)
    expect(secondPki.caCert).toBe(firstPki.caCert)
    expectConsistent(secondPki)
  })

  it('does not recreate a token that was removed from tokens.json', async () => {
    const dir = createDirectory()
    const { admin } = await loadPki(dir)
    const adminTokens = [{ token: admin.token!, user: 'stowage-admin', groups: ['system:masters'] }]
    writeFileSync(join(dir, 'tokens.json'), JSON.stringify({ tokens: adminTokens }))
    const pki = await loadPki(dir)
    expect(pki.tokens).toEqual(adminTokens)
    expect(pki.viewer.token).toBeUndefined()
  })
})

describe('renewal', () => {
  it('replaces certificates thirty days before they expire', async () => {
    const dir = createDirectory()
    const clock = manualClock()
    await loadPki(dir, { clock })
    await clock.advance(335 * DAY_MS)
    expect((await loadPki(dir, { clock })).writtenFiles).toEqual([])
    await clock.advance(1_000)
    expect(writtenFileNames(await loadPki(dir, { clock }))).toEqual(['serving.crt', 'admin.crt', 'viewer.crt'])
  })

  it('reissues expired certificates from the same CA, for the same keys', async () => {
    const dir = createDirectory()
    const clock = manualClock()
    const firstPki = await loadPki(dir, { clock })
    await clock.advance(2 * 365 * DAY_MS)
    const secondPki = await loadPki(dir, { clock })
    expectConsistent(secondPki)
    expect(secondPki.caCert).toBe(firstPki.caCert)
    expect(secondPki.admin.key).toBe(firstPki.admin.key)
    expect(Date.parse(parseCert(secondPki.admin.cert).validTo)).toBe(clock.nowMs() + 365 * DAY_MS)
    expect(secondPki.writtenFiles[1]).toEqual({
      file: 'admin.crt',
      reason: `it expires at ${parseCert(firstPki.admin.cert).validTo}`,
    })
  })

  it('renews the CA before a certificate could outlive it, and keeps existing certificates valid', async () => {
    const dir = createDirectory()
    const clock = manualClock()
    const firstPki = await loadPki(dir, { clock })
    await clock.advance((3_650 - 394) * DAY_MS)
    const secondPki = await loadPki(dir, { clock })
    expect(secondPki.caCert).not.toBe(firstPki.caCert)
    expectConsistent(secondPki)
    expect(parseCert(secondPki.servingCert).verify(parseCert(firstPki.caCert).publicKey)).toBe(true)
    expect(parseCert(secondPki.servingCert).checkIssued(parseCert(firstPki.caCert))).toBe(true)
    expect(parseCert(firstPki.admin.cert).checkIssued(parseCert(secondPki.caCert))).toBe(true)
  })

  it('replaces certificates that are not valid yet', async () => {
    const dir = createDirectory()
    await loadPki(dir, { clock: manualClock(Date.UTC(2040, 0, 1)) })
    const pki = await loadPki(dir)
    expect(writtenFileNames(pki)).toEqual(['ca.crt', 'serving.crt', 'admin.crt', 'viewer.crt'])
    expectConsistent(pki)
  })
})

describe('an interrupted start', () => {
  for (const [index, file] of FILES_IN_ORDER.entries()) {
    it(`is completed by the next start after a crash while writing ${file}`, async () => {
      const dir = createDirectory()
      const existingFiles = FILES_IN_ORDER.slice(0, index)
      await expect(loadPki(dir, { writeFile: crashingWriter(index) })).rejects.toThrow('crash')
      expect(readdirSync(dir).sort()).toEqual([...existingFiles, `${file}.tmp`].sort())
      const contents = existingFiles.map((name) => readFileSync(join(dir, name), 'utf8'))

      const pki = await loadPki(dir)
      expectConsistent(pki)
      expect(writtenFileNames(pki)).toEqual(FILES_IN_ORDER.slice(index))
      expect(existingFiles.map((name) => readFileSync(join(dir, name), 'utf8'))).toEqual(contents)
      expect(readdirSync(dir).sort()).toEqual([...FILES_IN_ORDER].sort())
      expect((await loadPki(dir)).writtenFiles).toEqual([])
    })
  }

  for (const [index, file] of ['ca.crt', 'serving.crt', 'admin.crt', 'viewer.crt'].entries()) {
    it(`is completed by the next start after a crash while renewing ${file}`, async () => {
      const dir = createDirectory()
      const clock = manualClock()
      const firstPki = await loadPki(dir, { clock })
      await clock.advance(20 * 365 * DAY_MS)
      await expect(loadPki(dir, { clock, writeFile: crashingWriter(index) })).rejects.toThrow('crash')

      const pki = await loadPki(dir, { clock })
      expectConsistent(pki)
      expect(writtenFileNames(pki)[0]).toBe(file)
      expect(pki.admin.key).toBe(firstPki.admin.key)
      expect((await loadPki(dir, { clock })).writtenFiles).toEqual([])
    })
  }

  /** Returns a writer that leaves a truncated temporary file behind, like a crash during writePrivateFile. */
  function crashingWriter(crashAt: number) {
    let writes = 0
    return async (path: string, content: string) => {
      if (writes++ < crashAt) return writePrivateFile(path, content)
      writeFileSync(`${path}.tmp`, content.slice(0, content.length / 2))
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
  ])('reports that %s is unusable, with a remedy', async (file, message) => {
    for (const content of ['', 'rubbish', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n']) {
      const dir = createDirectory()
      await loadPki(dir)
      writeFileSync(join(dir, file), content)
      await expect(loadPki(dir)).rejects.toThrow(`Cannot use ${join(dir, file)}: ${message}`)
    }
  })

  it.each(FILES_IN_ORDER.slice(2))('is repaired by recreating %s if it is missing', async (file) => {
    const dir = createDirectory()
    const firstPki = await loadPki(dir)
    rmSync(join(dir, file))
    const secondPki = await loadPki(dir)
    expectConsistent(secondPki)
    expect(secondPki.caCert).toBe(firstPki.caCert)
    expect(writtenFileNames(secondPki)).toEqual(file.endsWith('.key') ? [file, file.replace('.key', '.crt')] : [file])
  })

  it('is rejected if the key of the CA is missing', async () => {
    const dir = createDirectory()
    await loadPki(dir)
    rmSync(join(dir, 'ca.key'))
    await expect(loadPki(dir)).rejects.toThrow(
      `Cannot use ${join(dir, 'ca.key')}: it is missing, though ca.crt exists.`,
    )
  })

  it('is rejected if the CA certificate does not match its key', async () => {
    const [dir, otherDir] = [createDirectory(), createDirectory()]
    await loadPki(dir)
    writeFileSync(join(dir, 'ca.crt'), (await loadPki(otherDir)).caCert)
    await expect(loadPki(dir)).rejects.toThrow('ca.crt: it does not belong to the key in ca.key.')
  })

  it('is rejected if a key is not an ECDSA P-256 key', async () => {
    const dir = createDirectory()
    await loadPki(dir)
    const { privateKey } = generateKeyPairSync('ed25519')
    writeFileSync(join(dir, 'admin.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await expect(loadPki(dir)).rejects.toThrow('admin.key: its key is not an ECDSA P-256 key.')
  })

  it('is repaired by reissuing a certificate of another CA or with another subject', async () => {
    const [dir, otherDir] = [createDirectory(), createDirectory()]
    const [firstPki, foreignPki] = [await loadPki(dir), await loadPki(otherDir)]
    writeFileSync(join(dir, 'serving.key'), foreignPki.servingKey)
    writeFileSync(join(dir, 'serving.crt'), foreignPki.servingCert)
    writeFileSync(join(dir, 'viewer.key'), firstPki.admin.key)
    writeFileSync(join(dir, 'viewer.crt'), firstPki.admin.cert)
    const secondPki = await loadPki(dir)
    expect(secondPki.writtenFiles).toEqual([
      { file: 'serving.crt', reason: 'it was issued by another CA' },
      { file: 'viewer.crt', reason: 'it had another subject' },
    ])
    expectConsistent(secondPki)
  })

  it.each([
    ['[]', 'it has no list "tokens"'],
    ['null', 'it has no list "tokens"'],
    ['{"tokens":[{"token":"","user":"ann","groups":[]}]}', 'tokens[0] must have a token, a user and a list of groups'],
    ['{"tokens":[{"token":"t","user":"ann"}]}', 'tokens[0] must have a token, a user and a list of groups'],
    ['{"tokens":[null]}', 'tokens[0] must have a token, a user and a list of groups'],
    [
      `{"tokens":[{"token":"${'t'.repeat(22)}","user":"ann","groups":[]},{"token":"${'t'.repeat(22)}","user":"bob","groups":[]}]}`,
      'tokens[1] repeats an earlier token',
    ],
    [
      `{"tokens":[{"token":"${'z'.repeat(21)}","user":"ann","groups":[]}]}`,
      'tokens[0] of user "ann" has less than 128 bits; use at least 22 random characters, or 32 hexadecimal ones',
    ],
    [
      `{"tokens":[{"token":"${'0f'.repeat(15)}","user":"ann","groups":[]}]}`,
      'tokens[0] of user "ann" has less than 128 bits; use at least 22 random characters, or 32 hexadecimal ones',
    ],
  ])('is rejected if tokens.json contains %s', async (content, reason) => {
    const dir = createDirectory()
    await loadPki(dir)
    writeFileSync(join(dir, 'tokens.json'), content)
    await expect(loadPki(dir)).rejects.toThrow(`tokens.json: ${reason}.`)
  })

  it('whose keys and tokens other users can read is made private again', async () => {
    const dir = createDirectory()
    await loadPki(dir)
    for (const name of ['ca.key', 'admin.key', 'tokens.json']) chmodSync(join(dir, name), 0o644)
    await loadPki(dir)
    for (const name of ['ca.key', 'admin.key', 'tokens.json']) expect(modeOf(join(dir, name)), name).toBe(0o600)
  })
})
