import { describe, expect, it } from 'vitest'
import { defineProvisioner } from './check-plugin.ts'
import { parameter } from './parameter.ts'

const NFS = { nfs: { server: 'filer', path: '/x' } }

describe('defineProvisioner', () => {
  const functions = { provision: async () => ({ sizeBytes: 1, source: NFS }), delete: async () => {} }

  for (const name of [
    'disks',
    'Example.com/disks',
    'kubernetes.io/disks',
    'x.k8s.io/d',
    'a/b/c',
    '/d',
    'a/',
    'a b/c',
  ]) {
    it(`PROV-17 rejects the name ${JSON.stringify(name)}`, () => {
      expect(() => defineProvisioner({ name, ...functions })).toThrow('expected <your domain>/<name>')
    })
  }

  it('PROV-17 rejects missing functions, invalid labels and empty parameter declarations', () => {
    const name = 'example.com/disks'
    expect(() => defineProvisioner({ name, provision: functions.provision } as never)).toThrow(
      'lacks the function "delete"',
    )
    expect(() => defineProvisioner({ name, ...functions, labels: { tier: [] } })).toThrow('it has no values')
    expect(() => defineProvisioner({ name, ...functions, labels: { 'a b': ['c'] } })).toThrow('"a b"')
    expect(() => defineProvisioner({ name, ...functions, parameters: { tier: {} as never } })).toThrow('parameter.text')
  })

  it('PROV-17 rejects attributes without a type, and modify without attributes or driver', () => {
    const commonFields = { name: 'example.com/disks', ...functions, modify: async () => {} }
    const attributes = { tier: parameter.text({ doc: 'd' }) }
    expect(() => defineProvisioner({ ...commonFields, attributes: { tier: {} as never }, csiDriver: 'd' })).toThrow(
      'declares the attribute "tier" without its type',
    )
    expect(() => defineProvisioner({ ...commonFields, attributes })).toThrow('without "attributes" or "csiDriver"')
    expect(() => defineProvisioner({ ...commonFields, csiDriver: 'd' })).toThrow('without "attributes" or "csiDriver"')
    expect(defineProvisioner({ ...commonFields, attributes, csiDriver: 'd' }).csiDriver).toBe('d')
  })

  it('PROV-17 derives the argument types of provision from the declarations', () => {
    defineProvisioner({
      name: 'example.com/disks',
      parameters: {
        tier: parameter.choice(['fast', 'slow'], { doc: 'd', default: 'slow' }),
        server: parameter.text({ doc: 'd', required: true }),
        note: parameter.text({ doc: 'd' }),
        copies: parameter.integer({ doc: 'd', default: 1 }),
        reserve: parameter.bytes({ doc: 'd' }),
        thin: parameter.flag({ doc: 'd', default: true }),
        when: parameter.custom({ doc: 'd', expected: 'a date', parse: (text) => new Date(text) }),
      },
      labels: { 'example.com/tier': ['fast', 'slow'] },
      async provision({ parameters, labels }) {
        parameters.tier satisfies 'fast' | 'slow'
        parameters.server satisfies string
        parameters.note satisfies string | undefined
        parameters.copies satisfies number
        parameters.reserve satisfies bigint | undefined
        parameters.thin satisfies boolean
        parameters.when satisfies Date | undefined
        labels['example.com/tier'] satisfies readonly ('fast' | 'slow')[]
        // @ts-expect-error the parameter is optional
        parameters.note satisfies string
        // @ts-expect-error the parameter is not declared
        parameters.colour
        return { sizeBytes: 1, source: NFS }
      },
      async delete({ source }) {
        source.nfs?.server satisfies string | undefined
      },
    })
  })
})
