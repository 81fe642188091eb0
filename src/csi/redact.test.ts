import { create, type DescMessage, type Message } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Controller, CreateVolumeRequestSchema, Node, NodePublishVolumeRequestSchema } from './gen/csi_pb.js'
import { redact, redactLazily, redactText } from './redact.ts'

/** Secrets are delimited by §, so that a match in the output is a leak. */
const aSecret = fc.string({ minLength: 1, maxLength: 20 }).map((text) => `§${text.replaceAll('*', '')}§`)
const someSecrets = fc.dictionary(fc.stringMatching(/^[a-z._-]{1,8}$/), aSecret, { minKeys: 1, maxKeys: 4 })

const schemasWithSecrets = [...Controller.methods, ...Node.methods]
  .map(({ input }) => input)
  .filter((schema) => schema.fields.some(({ name }) => name === 'secrets'))

describe('redact', () => {
  it('PROV-16 is tested with every request that has secrets', () => {
    expect(schemasWithSecrets.map(({ name }) => name)).toContain('CreateVolumeRequest')
    expect(schemasWithSecrets.length).toBe(14)
  })

  it('PROV-16 removes all secrets from messages and error messages', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...schemasWithSecrets),
        someSecrets,
        fc.array(fc.string()),
        (schema: DescMessage, secrets, texts) => {
          const request = create(schema, { secrets } as never) as Message
          const values = Object.values(secrets)
          const loggedText = JSON.stringify({ request: redactLazily(schema, request) })
          const text = redactText(
            texts.map((prefix, index) => prefix + values[index % values.length]).join(' '),
            schema,
            request,
          )
          for (const value of values) {
            expect(loggedText).not.toContain(JSON.stringify(value).slice(1, -1))
            expect(text).not.toContain(value)
          }
        },
      ),
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
