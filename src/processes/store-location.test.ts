import { describe, expect, it } from 'vitest'
import { silentLog } from '../base/log.ts'
import { UsageError } from '../base/usage-error.ts'
import { type EtcdLocation, parseStore, warnAboutPlainText } from './store-location.ts'

describe('parseStore', () => {
  it('returns the embedded store if the flag is not set', () => {
    expect(parseStore(undefined)).toEqual({ is: 'embedded' })
  })

  it.each([
    ['etcd://127.0.0.1:2379', { endpoints: ['127.0.0.1:2379'], prefix: undefined, isEncrypted: false }],
    ['etcd://127.0.0.1:2379/', { endpoints: ['127.0.0.1:2379'], prefix: undefined, isEncrypted: false }],
    ['etcd://a:1,b:2,[::1]:3/team/x', { endpoints: ['a:1', 'b:2', '[::1]:3'], prefix: '/team/x', isEncrypted: false }],
    ['etcds://etcd.example:2379/s', { endpoints: ['etcd.example:2379'], prefix: '/s', isEncrypted: true }],
  ])('parses %s', (text, location) => {
    expect(parseStore(text)).toEqual({ is: 'etcd', ...location })
  })

  it.each(['', 'etcd://', 'etcd://host', 'etcd://a:1,,b:2', 'redis://a:1', '/var/lib/x', 'etcd://a:1/with space'])(
    'rejects %j and names the expected format',
    (text) => {
      expect(() => parseStore(text)).toThrow(UsageError)
      expect(() => parseStore(text)).toThrow('expected etcd://HOST:PORT')
    },
  )
})

describe('warnAboutPlainText', () => {
  it.each([
    ['etcd://127.0.0.1:2379', []],
    ['etcd://localhost:2379,[::1]:2379,127.8.0.1:1', []],
    ['etcds://etcd.example:2379', []],
    ['etcd://etcd.example:2379,127.0.0.1:2379', ['etcd.example:2379']],
    ['etcd://10.0.0.1:2379,127.0.0.1.example:1', ['10.0.0.1:2379', '127.0.0.1.example:1']],
  ])('SYS-9 for %s, warns about the unencrypted remote endpoints %j', (store, endpoints) => {
    const warnings: object[] = []
    warnAboutPlainText(parseStore(store) as EtcdLocation, {
      ...silentLog,
      warn: (fields) => void warnings.push(fields),
    })
    expect(warnings).toEqual(endpoints.length > 0 ? [{ endpoints }] : [])
  })
})
