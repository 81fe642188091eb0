import { describe, expect, it } from 'vitest'
import { cellsOf, tryCreate, tryUpdate } from '../kind.fixture.ts'
import { secretKind } from './secret.ts'

const toBase64 = (text: string) => Buffer.from(text).toString('base64')
const aSecret = (fields: object) => ({ metadata: { name: 'login', namespace: 'shop' }, ...fields })

describe('Secret', () => {
  it('has the default type Opaque', () => {
    expect(tryCreate(secretKind, aSecret({})).object.type).toBe('Opaque')
  })

  it('merges stringData into data, and does not store stringData', () => {
    const body = aSecret({ data: { user: toBase64('old'), port: toBase64('1') }, stringData: { user: 'root' } })
    const { object } = tryCreate(secretKind, body)
    expect(object.data).toEqual({ user: toBase64('root'), port: toBase64('1') })
    expect(object).not.toHaveProperty('stringData')
  })

  it.each([
    ['an invalid key', { data: { 'a b': '' } }, 'data[a b]: Invalid value: "a b": a valid config key must consist of'],
    [
      'a token without its service account',
      { type: 'kubernetes.io/service-account-token' },
      'metadata.annotations[kubernetes.io/service-account.name]: Required value',
    ],
    [
      'a TLS pair without certificate',
      { type: 'kubernetes.io/tls', stringData: { 'tls.key': 'k' } },
      'data[tls.crt]: Required value',
    ],
    [
      'a TLS pair without key',
      { type: 'kubernetes.io/tls', stringData: { 'tls.crt': 'c' } },
      'data[tls.key]: Required value',
    ],
    [
      'an empty SSH key',
      { type: 'kubernetes.io/ssh-auth', data: { 'ssh-privatekey': '' } },
      'data[ssh-privatekey]: Required value',
    ],
    [
      'a docker config secret without its key',
      { type: 'kubernetes.io/dockerconfigjson' },
      'data[.dockerconfigjson]: Required value',
    ],
    [
      'a docker config that is not JSON',
      { type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': 'hunter2' } },
      'data[.dockercfg]: Invalid value: "<secret contents redacted>": must be a JSON object',
    ],
  ])('rejects %s', (_case, fields, message) => {
    const { errors } = tryCreate(secretKind, aSecret(fields))
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(message)
  })

  it('requires a username or a password for basic-auth', () => {
    const type = 'kubernetes.io/basic-auth'
    expect(tryCreate(secretKind, aSecret({ type })).errors).toEqual([
      'data[username]: Required value',
      'data[password]: Required value',
    ])
    expect(tryCreate(secretKind, aSecret({ type, stringData: { password: 'x' } })).errors).toEqual([])
  })

  it('accepts at most 1 MiB of values', () => {
    const maximumData = { a: 'x'.repeat(1_048_575), b: 'x' }
    expect(tryCreate(secretKind, aSecret({ stringData: maximumData })).errors).toEqual([])
    expect(tryCreate(secretKind, aSecret({ stringData: { ...maximumData, c: 'x' } })).errors).toEqual([
      'data: Too long: may not be more than 1048576 bytes',
    ])
  })

  it('has an immutable type', () => {
    const { object } = tryCreate(secretKind, aSecret({ stringData: { 'tls.crt': 'c', 'tls.key': 'k' } }))
    expect(tryUpdate(secretKind, object, { ...object, type: 'kubernetes.io/tls' }).errors).toEqual([
      'type: Invalid value: "kubernetes.io/tls": field is immutable',
    ])
  })

  it('rejects changes to the data of an immutable secret', () => {
    const { object } = tryCreate(secretKind, aSecret({ immutable: true, stringData: { user: 'root' } }))
    expect(
      tryUpdate(secretKind, object, { ...object, metadata: { ...object.metadata, labels: { a: 'b' } } }).errors,
    ).toEqual([])
    expect(tryUpdate(secretKind, object, aSecret({ stringData: { user: 'admin' } })).errors).toEqual([
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
    ])
  })

  it('has a table row with the number of keys and can be selected by type', () => {
    const { object } = tryCreate(secretKind, aSecret({ stringData: { a: '1', b: '2' } }))
    expect(cellsOf(secretKind, object)).toMatchObject({ Name: 'login', Type: 'Opaque', Data: 2 })
    expect(secretKind.selectableFields?.type?.(object)).toBe('Opaque')
  })
})
