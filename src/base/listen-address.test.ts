import { describe, expect, it } from 'vitest'
import { parseListen, urlOf } from './listen-address.ts'

describe('parseListen and urlOf', () => {
  it.each([
    ['127.0.0.1:7443', { host: '127.0.0.1', port: 7443 }, 'https://127.0.0.1:7443'],
    ['7443', { host: '127.0.0.1', port: 7443 }, 'https://127.0.0.1:7443'],
    [':7443', { host: '0.0.0.0', port: 7443 }, 'https://127.0.0.1:7443'],
    ['[::1]:0', { host: '::1', port: 0 }, 'https://[::1]:0'],
    ['storage.example.com:443', { host: 'storage.example.com', port: 443 }, 'https://storage.example.com:443'],
  ])('parse %s and return the URL for clients', (text, address, url) => {
    expect(parseListen(text)).toEqual(address)
    expect(urlOf(address)).toBe(url)
  })
})
