import { describe, expect, it } from 'vitest'
import { firstTokenAuthenticator, type TokenAuthenticator } from './token-authenticator.ts'

const userOf = (name: string) => ({ user: { name, groups: [] } })
const agnostic: TokenAuthenticator = (token) => (token === 'static' ? userOf('ann') : undefined)
const rejecting: TokenAuthenticator = (token) => (token === 'expired' ? { rejection: 'expired' } : undefined)
const accepting: TokenAuthenticator = (_token, audiences) => ({ ...userOf('bob'), audiences })
const authenticate = firstTokenAuthenticator([agnostic, rejecting, accepting], ['api'])

describe('firstTokenAuthenticator', () => {
  it('SYS-9 returns the result of the first authenticator that knows the token', () => {
    expect(authenticate('static')).toMatchObject({ user: { name: 'ann' } })
    expect(authenticate('expired')).toEqual({ rejection: 'expired' })
    expect(authenticate('other')).toMatchObject({ user: { name: 'bob' }, audiences: ['api'] })
    expect(firstTokenAuthenticator([agnostic, rejecting], ['api'])('other')).toBeUndefined()
  })

  it('SYS-9 accepts a token without audiences only for the audiences of the API server', () => {
    expect(authenticate('static', ['vault', 'api'])).toMatchObject({ audiences: ['api'] })
    expect(authenticate('static', ['vault'])).toMatchObject({ rejection: expect.stringContaining('audiences') })
  })
})
