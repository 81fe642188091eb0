import { afterEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { type Medium, memoryMedium, openMemoryStore, type Store } from '../../store/index.ts'
import { createServerFixture } from '../server.fixture.ts'
import { formatSecretsConfiguration, generateKey, parseEncryptionConfiguration } from './configuration.ts'
import { createEncryption } from './encryption.ts'
import { findUndecryptable, rewriteStaleValues } from './rewrite.ts'

const HEAD = 'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n'
const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER_KEY = Buffer.alloc(32, 8).toString('base64')
const SECRETS = 'core/secrets/default/'
const textOf = (value: Uint8Array | undefined) => value && Buffer.from(value).toString()
const bytesOf = (value: string) => Buffer.from(value)

const aesgcm = (...keys: [name: string, secret: string][]) =>
  `{aesgcm: {keys: [${keys.map(([name, secret]) => `{name: ${name}, secret: ${secret}}`).join(', ')}]}}`
const secretsWith = (...providers: string[]) =>
  parseEncryptionConfiguration(`${HEAD}resources: [{resources: [secrets], providers: [${providers.join(', ')}]}]`)

const stores: Store[] = []
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
})

describe('an encryption configuration', () => {
  it.each([
    ['resources: []', 'resources: at least one entry is required'],
    ['resources: [{resources: [secrets], providers: []}]', 'resources[0].providers: at least one provider is required'],
    ['resources: [{resources: [secrets], provider: []}]', 'unknown field "resources[0].provider"'],
    [
      'resources: [{resources: [Secrets/x], providers: [{identity: {}}]}]',
      'resources[0].resources[0]: "Secrets/x" is not a resource',
    ],
    ['resources: [{resources: ["*.", secrets], providers: [{identity: {}}]}]', '*. already includes secrets'],
    [
      'resources: [{resources: [secrets], providers: [{kms: {name: a}}]}]',
      'providers[0].kms: the provider is not supported',
    ],
    [
      'resources: [{resources: [secrets], providers: [{aesgcm: {keys: []}}]}]',
      'aesgcm.keys: at least one key is required',
    ],
    ['resources: [{resources: [secrets], providers: [{aesgcm: {keys: []}, identity: {}}]}]', 'exactly one provider'],
    [
      `resources: [{resources: [secrets], providers: [${aesgcm(['a', KEY], ['a', KEY])}]}]`,
      'keys[1].name: the name is used',
    ],
    [
      `resources: [{resources: [secrets], providers: [${aesgcm(['a', 'AAAA'])}]}]`,
      'keys[0].secret: the key has 3 bytes, not 16, 24, 32',
    ],
    [
      `resources: [{resources: [secrets], providers: [${aesgcm(['a', '"se cret"'])}]}]`,
      'keys[0].secret: the key is not base64',
    ],
  ])('SYS-9 with %s is rejected with an error that names the problem', async (resources, message) => {
    await expect(parseEncryptionConfiguration(`${HEAD}${resources}`)).rejects.toThrow(message)
  })

  it('SYS-9 with an invalid key is rejected with an error that does not contain the key', async () => {
    for (const secret of ['123456789', '{a: hidden-value}', '"hidden-value!"', '"hidden-value']) {
      const resources = `resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: a, secret: ${secret}}]}}]}]`
      const error = await parseEncryptionConfiguration(`${HEAD}${resources}`).catch((caught: Error) => caught)
      expect(error).toBeInstanceOf(Error)
      expect((error as Error).message).not.toMatch(/hidden-value|123456789/)
    }
  })

  it.each([
    ['secrets', 'core/secrets/default/a', true],
    ['secrets', 'core/secretsx/default/a', false],
    ['widgets.example.com', 'example.com/widgets/default/a', true],
    ['"*.apps"', 'apps/deployments/default/a', true],
    ['"*."', 'core/pods/default/a', true],
    ['"*."', 'apps/deployments/default/a', false],
    ['"*.*"', 'apps/deployments/default/a', true],
  ])('SYS-9 for %s encrypts %s: %s', async (resource, key, expected) => {
    const providers = aesgcm(['a', KEY])
    const rules = await parseEncryptionConfiguration(
      `${HEAD}resources: [{resources: [${resource}], providers: [${providers}]}]`,
    )
    const storedBytes = createEncryption(rules).encode(key, bytesOf('{}'))
    expect(textOf(storedBytes)!.startsWith('k8s:enc:aesgcm:v1:a:')).toBe(expected)
  })

  it('SYS-9 has, if it is generated, a key for Secrets, and the provider identity to read unencrypted ones', async () => {
    const rules = await parseEncryptionConfiguration(await formatSecretsConfiguration([generateKey('key-1')]))
    expect(rules).toMatchObject([
      { prefixes: ['core/secrets/'], providers: [{ is: 'aesgcm', keys: [{ name: 'key-1' }] }, { is: 'identity' }] },
    ])
  })
})

describe('a plain value', () => {
  it('SYS-9 of a configured resource is read only with the provider identity', async () => {
    const withIdentity = createEncryption(await secretsWith(aesgcm(['a', KEY]), '{identity: {}}'))
    expect(textOf(withIdentity.decode(`${SECRETS}x`, bytesOf('{}')))).toBe('{}')
    const reducedEncryption = createEncryption(await secretsWith(aesgcm(['a', KEY])))
    expect(() => reducedEncryption.decode(`${SECRETS}x`, bytesOf('{}'))).toThrow('the value is not encrypted')
  })
})

describe('an encrypted value', () => {
  it('SYS-9 has the length of the Kubernetes format and a fresh nonce, and is bound to its key in the store', async () => {
    const encryption = createEncryption(await secretsWith(aesgcm(['a', KEY])))
    const storedBytes = encryption.encode(`${SECRETS}x`, bytesOf('{"a":1}'))
    expect(storedBytes.length).toBe('k8s:enc:aesgcm:v1:a:'.length + 12 + 7 + 16)
    expect(textOf(storedBytes)).not.toContain('{"a":1}')
    expect(encryption.encode(`${SECRETS}x`, bytesOf('{"a":1}'))).not.toEqual(storedBytes)
    expect(textOf(encryption.decode(`${SECRETS}x`, storedBytes))).toBe('{"a":1}')
    expect(() => encryption.decode(`${SECRETS}y`, storedBytes)).toThrow(
      `the stored value of ${SECRETS}y cannot be decrypted: key "a" of provider aesgcm has another secret ` +
        'than the one that encrypted the value, or the stored value was modified',
    )
  })

  it("SYS-9 is read with the key that it names, in any position, and fails with a missing key's name", async () => {
    const storedBytes = createEncryption(await secretsWith(aesgcm(['old', KEY]))).encode(`${SECRETS}x`, bytesOf('{}'))
    const bothKeys = createEncryption(await secretsWith('{identity: {}}', aesgcm(['new', OTHER_KEY], ['old', KEY])))
    expect(textOf(bothKeys.decode(`${SECRETS}x`, storedBytes))).toBe('{}')
    const reducedEncryption = createEncryption(await secretsWith(aesgcm(['new', OTHER_KEY])))
    expect(() => reducedEncryption.decode(`${SECRETS}x`, storedBytes)).toThrow(
      'does not have key "old" of provider aesgcm',
    )
    expect(() => createEncryption().decode(`${SECRETS}x`, storedBytes)).toThrow('does not have key "old"')
  })

  it('SYS-9 is stale unless the first key of the first provider encrypts it', async () => {
    const oldEncryption = createEncryption(await secretsWith(aesgcm(['old', KEY])))
    const rotatedEncryption = createEncryption(await secretsWith(aesgcm(['new', OTHER_KEY], ['old', KEY])))
    const key = `${SECRETS}x`
    const storedBytes = oldEncryption.encode(key, bytesOf('{}'))
    expect(oldEncryption.isStale(key, storedBytes)).toBe(false)
    expect(rotatedEncryption.isStale(key, storedBytes)).toBe(true)
    expect(rotatedEncryption.isStale(key, bytesOf('{}'))).toBe(true)
    expect(createEncryption(await secretsWith('{identity: {}}', aesgcm(['old', KEY]))).isStale(key, storedBytes)).toBe(
      true,
    )
  })
})

/** A medium whose stored bytes a test can search. */
function spyMedium(): { medium: Medium; contains(marker: string): boolean } {
  const writtenValues: Buffer[] = []
  const medium = memoryMedium()
  return {
    medium: {
      ...medium,
      write: (batch) => {
        for (const { value } of batch.append) writtenValues.push(Buffer.from(value))
        return medium.write(batch)
      },
    },
    contains: (marker) => writtenValues.some((value) => value.includes(marker)),
  }
}

async function openStore(medium: Medium, rules: Awaited<ReturnType<typeof secretsWith>> = []) {
  const encryption = createEncryption(rules)
  const store = await openMemoryStore({ clock: manualClock(), medium, transformer: encryption })
  stores.push(store)
  return { store, encryption }
}

const put = (store: Store, key: string, value: string) => store.transact(() => [{ put: key, value: bytesOf(value) }])

describe('a store with encryption', () => {
  it('SYS-9 stores no plain value of a configured resource, and does not encrypt other resources', async () => {
    const { medium, contains } = spyMedium()
    const { store } = await openStore(medium, await secretsWith(aesgcm(['a', KEY])))
    const events: string[] = []
    store.watch({
      prefix: 'core/',
      afterRevision: 0,
      onEvents: (batch) => void events.push(...batch.map(({ entry }) => textOf(entry?.value) ?? 'deleted')),
      onEnd: () => {},
    })
    await put(store, `${SECRETS}x`, '{"v":"marker-1"}')
    await put(store, `${SECRETS}x`, '{"v":"marker-2"}')
    await put(store, 'core/configmaps/default/x', '{"v":"plain"}')
    expect(contains('marker')).toBe(false)
    expect(contains('plain')).toBe(true)
    expect(textOf((await store.get(`${SECRETS}x`))?.value)).toBe('{"v":"marker-2"}')
    const { entries } = await store.list({ prefix: SECRETS, atRevision: 1 })
    expect(entries.map(({ value }) => textOf(value))).toEqual(['{"v":"marker-1"}'])
    expect(events).toEqual(['{"v":"marker-1"}', '{"v":"marker-2"}', '{"v":"plain"}'])
  })

  it('SYS-9 does not need the old key after stale values were rewritten with the new one', async () => {
    const { medium } = spyMedium()
    const plainServer = await openStore(medium)
    await put(plainServer.store, `${SECRETS}a`, '{"n":1}')
    await plainServer.store.close()
    const first = await openStore(medium, await secretsWith(aesgcm(['old', KEY]), '{identity: {}}'))
    await put(first.store, `${SECRETS}b`, '{"n":2}')
    await put(first.store, 'core/pods/default/a', '{}')
    const rotatedRules = await secretsWith(aesgcm(['new', OTHER_KEY], ['old', KEY]), '{identity: {}}')
    first.encryption.setRules(rotatedRules)
    const newKeyRules = await secretsWith(aesgcm(['new', OTHER_KEY]))
    const findUndecryptableValue = () =>
      findUndecryptable(first.store, { current: first.encryption, candidate: createEncryption(newKeyRules) })
    expect((await findUndecryptableValue())?.message).toContain(`${SECRETS}a`)
    expect(await rewriteStaleValues(first.store, first.encryption, () => expect.fail())).toBe(2)
    expect(await rewriteStaleValues(first.store, first.encryption, () => expect.fail())).toBe(0)
    expect(await findUndecryptableValue()).toBeUndefined()
    await first.store.close()
    const second = await openStore(medium, newKeyRules)
    const { entries } = await second.store.list({ prefix: SECRETS })
    expect(entries.map(({ value }) => textOf(value))).toEqual(['{"n":1}', '{"n":2}'])
  })

  it('SYS-9 without an encryption key fails only the requests that read a value encrypted with it, and names the key', async () => {
    const { medium } = spyMedium()
    const { store } = await openStore(medium, await secretsWith(aesgcm(['lost', KEY])))
    await put(store, `${SECRETS}a`, '{"metadata":{"name":"a","namespace":"default"}}')
    await store.close()
    const server = await createServerFixture({
      medium,
      transformer: createEncryption(await secretsWith(aesgcm(['new', OTHER_KEY]))),
    })
    const { status, json } = await server.get('/api/v1/namespaces/default/secrets/a')
    expect({ status, message: json.message }).toEqual({
      status: 500,
      message: expect.stringContaining(
        'the stored value of core/secrets/default/a cannot be decrypted: the encryption configuration does not have key "lost" of provider aesgcm',
      ),
    })
    expect((await server.get('/api/v1/secrets')).status).toBe(500)
    expect((await server.get('/api/v1/namespaces')).status).toBe(200)
  })

  it('SYS-9 without an encryption key rewrites the values encrypted with other keys, and reports the name of the value that it cannot decrypt', async () => {
    const { medium } = spyMedium()
    for (const [name, keyName] of [
      ['a', 'lost'],
      ['b', 'old'],
    ] as const) {
      const { store } = await openStore(medium, await secretsWith(aesgcm([keyName, KEY])))
      await put(store, `${SECRETS}${name}`, '{}')
      await store.close()
    }
    const { store, encryption } = await openStore(medium, await secretsWith(aesgcm(['new', OTHER_KEY], ['old', KEY])))
    const messages: string[] = []
    expect(await rewriteStaleValues(store, encryption, ({ message }) => messages.push(message))).toBe(1)
    expect(messages).toEqual([expect.stringContaining(`${SECRETS}a cannot be decrypted`)])
    expect((await findUndecryptable(store, { current: encryption }))?.message).toBe(messages[0])
  })

  it('SYS-9 encrypts a plain Secret with an update that changes nothing', async () => {
    const { medium } = spyMedium()
    const plainServer = await createServerFixture({ medium })
    const secrets = '/api/v1/namespaces/default/secrets'
    await plainServer.post(secrets, { metadata: { name: 'a' }, data: { key: 'dmFsdWU=' } })
    await plainServer.store.close()
    const rules = await secretsWith(aesgcm(['a', KEY]), '{identity: {}}')
    const server = await createServerFixture({ medium, transformer: createEncryption(rules) })
    const secretBefore = (await server.get(`${secrets}/a`)).json
    const secretAfter = (await server.put(`${secrets}/a`, secretBefore)).json
    expect(secretAfter.metadata.resourceVersion).not.toBe(secretBefore.metadata.resourceVersion)
    expect((await server.store.get('core/secrets/default/a'))?.isStale).toBe(false)
    const unchangedSecret = (await server.put(`${secrets}/a`, secretAfter)).json
    expect(unchangedSecret.metadata.resourceVersion).toBe(secretAfter.metadata.resourceVersion)
  })
})
