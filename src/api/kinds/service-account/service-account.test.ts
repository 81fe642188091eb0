import { describe, expect, it } from 'vitest'
import { tryCreate } from '../kind.fixture.ts'
import { serviceAccountKind } from './service-account.ts'

describe('ServiceAccount', () => {
  it('keeps only the names of its secrets', () => {
    const body = { metadata: { name: 'robot' }, secrets: [{ name: 'token', namespace: 'other', uid: 'u' }] }
    expect(tryCreate(serviceAccountKind, body).object.secrets).toEqual([{ name: 'token' }])
  })
})
