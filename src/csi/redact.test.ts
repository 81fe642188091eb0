import { create, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Logger } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { callDriver, createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'
import { Controller, CreateVolumeRequestSchema, Identity, Node, NodePublishVolumeRequestSchema } from './gen/csi_pb.js'
import { redact, redactLazily } from './redact.ts'

/** Secrets are delimited by §, so that a match in the output is a leak. */
const aSecret = fc.string({ minLength: 2, maxLength: 20 }).map((text) => `§${text.replaceAll('*', '.')}§`)
const someSecrets = fc.dictionary(fc.stringMatching(/^[a-z._-]{1,8}$/), aSecret, { minKeys: 1, maxKeys: 4 })

const METHODS = [...Identity.methods, ...Controller.methods, ...Node.methods]
const METHODS_WITH_SECRETS = METHODS.filter(({ input }) => input.fields.some(({ name }) => name === 'secrets'))

describe('redact', () => {
  it('PROV-16 removes the values of secrets from requests', () => {
    fc.assert(
      fc.property(fc.constantFrom(...METHODS_WITH_SECRETS), someSecrets, ({ input }: DescMethod, secrets) => {
        const request = create(input, { secrets } as never) as Message
        const logLine = JSON.stringify({ request: redactLazily(input, request) })
        for (const value of Object.values(secrets)) expect(logLine).not.toContain(JSON.stringify(value).slice(1, -1))
      }),
    )
  })

  it('PROV-16 keeps the keys of secrets and redacts mount flags and tokens', () => {
    const request = create(NodePublishVolumeRequestSchema, {
      volumeId: 'a',
      secrets: { password: 'hunter2' },
      volumeContext: { 'csi.storage.k8s.io/serviceAccount.tokens': '{"t":1}', pool: 'fast' },
      volumeCapability: { accessType: { case: 'mount', value: { fsType: 'ext4', mountFlags: ['password=x', 'ro'] } } },
    })
    expect(redact(NodePublishVolumeRequestSchema, request)).toEqual({
      volumeId: 'a',
      secrets: { password: '***' },
      volumeContext: { 'csi.storage.k8s.io/serviceAccount.tokens': '***', pool: 'fast' },
      volumeCapability: { mount: { fsType: 'ext4', mountFlags: ['***', '***'] } },
    })
  })

  it('PROV-16 does not change the message', () => {
    const request = create(CreateVolumeRequestSchema, { name: 'a', secrets: { k: 'v' } })
    redact(CreateVolumeRequestSchema, request)
    expect(request.secrets).toEqual({ k: 'v' })
  })
})

describe("the driver's messages", () => {
  const SECRET = 'correct-horse/battery'
  const FORMS = [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString('base64')]
  const QUOTE = `login with ${FORMS.join(', ')} failed`
  const MASKED_QUOTE = 'login with ***, ***, *** failed'

  /** Creates a driver that returns `QUOTE` in errors, or in every text of its responses, and collects the log lines. */
  function createQuotingDriver(outcome: 'error' | 'response') {
    const lines: string[] = []
    const write = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
    const log: Logger = { debug: write, info: write, warn: write, error: write }
    const driver = createCsiDriver(
      async ({ output }) => {
        if (outcome === 'error') throw new CsiError('INTERNAL', QUOTE)
        return create(output, buildMessage(output, QUOTE) as never)
      },
      { instruments: { clock: manualClock(), log } },
    )
    return { driver, lines }
  }

  const send = (driver: ReturnType<typeof createCsiDriver>, method: DescMethod, fields: object = {}) =>
    callDriver(driver, method, create(method.input, fields as never) as Message, {})

  it('PROV-16 are tested with all 14 methods whose requests have secrets', () => {
    expect(METHODS_WITH_SECRETS.map(({ name }) => name)).toContain('CreateVolume')
    expect(METHODS_WITH_SECRETS.length).toBe(14)
  })

  it.each(METHODS_WITH_SECRETS.map((method) => [method.name, method] as const))(
    'PROV-16 are masked in errors and logs of %s and of every later call',
    async (_name, method) => {
      const { driver, lines } = createQuotingDriver('error')
      await expect(send(driver, method, { secrets: { password: SECRET } })).rejects.toThrow(MASKED_QUOTE)
      for (const laterMethod of METHODS) await expect(send(driver, laterMethod)).rejects.toThrow(MASKED_QUOTE)
      for (const form of FORMS) expect(lines.join('\n')).not.toContain(form)
      expect(lines.filter((line) => line.includes(MASKED_QUOTE))).toHaveLength(METHODS.length + 1)
    },
  )

  it('PROV-16 are masked in the messages of all responses and in their log', async () => {
    const { driver, lines } = createQuotingDriver('response')
    await send(driver, Controller.method.createVolume, { secrets: { password: SECRET } })
    for (const method of METHODS) await send(driver, method)
    for (const form of FORMS) expect(lines.join('\n')).not.toContain(form)
    const { volumeCondition } = await driver.node.nodeGetVolumeStats({ volumeId: 'a' })
    expect(volumeCondition?.message).toBe(MASKED_QUOTE)
    expect((await driver.controller.listVolumes({})).entries[0]?.status?.volumeCondition?.message).toBe(MASKED_QUOTE)
    // Other texts are data, such as the names of parameters. Only the log masks them.
    expect((await driver.identity.getPluginInfo({})).vendorVersion).toBe(QUOTE)
  })

  it.each([
    [
      'a service account token',
      { volumeContext: { 'csi.storage.k8s.io/serviceAccount.tokens': `{"a":{"token":"${SECRET}"}}` } },
    ],
    [
      'a password in a mount flag',
      { volumeCapability: { accessType: { case: 'mount', value: { mountFlags: [`password=${SECRET}`] } } } },
    ],
  ])('PROV-16 are masked if they quote %s', async (_secret, fields) => {
    const { driver } = createQuotingDriver('error')
    await expect(send(driver, Node.method.nodePublishVolume, fields)).rejects.toThrow(MASKED_QUOTE)
  })
})

/** Returns a message with the text in its string fields, one element in every list of messages, and nested messages. */
function buildMessage(schema: DescMessage, text: string, depth = 0): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const field of schema.fields) {
    if (field.oneof || depth > 4) continue
    if (field.fieldKind === 'scalar' && field.scalar === 9) fields[field.localName] = text
    if (field.fieldKind === 'message') fields[field.localName] = buildNested(field.message, depth)
    if (field.fieldKind === 'list' && field.listKind === 'message')
      fields[field.localName] = [buildNested(field.message, depth)]
    if (field.fieldKind === 'map' && field.mapKind === 'scalar') fields[field.localName] = { key: text }
  }
  return fields

  function buildNested(message: DescMessage, level: number) {
    return message.typeName.startsWith('google.protobuf.') ? undefined : buildMessage(message, text, level + 1)
  }
}
