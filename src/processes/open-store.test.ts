import { describe, expect, it } from 'vitest'
import { explainEtcdError } from './open-store.ts'

describe('explainEtcdError', () => {
  const location = { is: 'etcd', endpoints: ['127.0.0.1:2379'], prefix: undefined, isEncrypted: false } as const

  it.each([
    ['connect ECONNREFUSED 127.0.0.1:2379', 'the connection was refused. Is etcd running there?'],
    ['getaddrinfo ENOTFOUND etcd.example', 'the host name cannot be resolved'],
    [
      'self-signed certificate in certificate chain',
      'the TLS connection failed (self-signed certificate in certificate chain). Check --etcd-ca',
    ],
    ['write EPROTO: SSL routines:ssl3_get_record:wrong version number', 'etcd does not use TLS there'],
    ['read ECONNRESET', 'Does etcd need TLS (etcds://)?'],
    ['something else', 'something else'],
  ])('names the endpoint and explains the error %j', (message, problem) => {
    const text = explainEtcdError(location, new Error(message))
    expect(text).toContain('Cannot use etcd at 127.0.0.1:2379 (--store): ')
    expect(text).toContain(problem)
  })
})
