import { create, type DescMessage, type Message } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Controller, CreateVolumeRequestSchema, Node, NodePublishVolumeRequestSchema } from './gen/csi_pb.js'
import { redact, redactLazily, redactText } from './redact.ts'

/** Delimited by §, so that a match in the output can only be a leak. */
const aSecret = fc.string({ minLength: 1, maxLength: 20 }).map((text) => `§${text.replaceAll('*', '')}§`)
const someSecrets = fc.dictionary(fc.stringMatching(/^[a-z._-]{1,8}$/), aSecret, { minKeys: 1, maxKeys: 4 })

const withSecrets = [...Controller.methods, ...Node.methods]
  .map(({ input }) => input)
  .filter((schema) => schema.fields.some(({ name }) => name === 'secrets'))

describe('a redacted message', () => {
  it('PROV-16 covers every request that carries secrets', () => {
    expect(withSecrets.map(({ name }) => name)).toContain('CreateVolumeRequest')
    expect(withSecrets.length).toBe(14)
  })

  it('PROV-16 never contains a secret, and neither does a redacted error', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...withSecrets),
        someSecrets,
        fc.array(fc.string()),
        (schema: DescMessage, secrets, words) => {
          const request = create(schema, { secrets } as never) as Message
          const values = Object.values(secrets)
          const written = JSON.stringify({ request: redactLazily(schema, request) })
          const text = redactText(words.map((word, at) => word + values[at % values.length]).join(' '), schema, request)
          for (const value of values) {
            expect(written).not.toContain(JSON.stringify(value).slice(1, -1))
            expect(text).not.toContain(value)
          }
        },
      ),
    )
  })

  it('PROV-16 shows the keys of secrets, and hides mount flags and tokens', () => {
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

  it('PROV-16 is a copy: the message is unchanged', () => {
    const request = create(CreateVolumeRequestSchema, { name: 'a', secrets: { k: 'v' } })
    redact(CreateVolumeRequestSchema, request)
    expect(request.secrets).toEqual({ k: 'v' })
  })
})
