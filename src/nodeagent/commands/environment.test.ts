import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ConfigError, commandOf, environmentOf, expanded } from './environment.ts'

const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u', labels: { app: 'shop' } } }

it('SYS-7 expands known names, keeps unknown ones, and unescapes $$', () => {
  const env = { A: '1', B: '$(A)' }
  expect(expanded('$(A)-$(B)-$(C)-$$(A)-$A-$', env)).toBe('1-$(A)-$(C)-$(A)-$A-$')
  fc.assert(
    fc.property(fc.string(), (text) => {
      if (!text.includes('$')) expect(expanded(text, env)).toBe(text)
      expect(expanded(text.replaceAll('$', '$$$$'), env)).toBe(text)
    }),
  )
})

it('SYS-7 resolves earlier variables and pod fields', () => {
  const container = {
    name: 'c',
    env: [
      { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
      { name: 'BOTH', value: '$(NAME)/$(APP)/$(LATER)' },
      { name: 'LATER', value: 'x' },
    ],
    command: ['echo', '$(BOTH)'],
    args: ['$(LATER)'],
  }
  const env = environmentOf(pod, container as never)
  expect(env).toEqual({ NAME: 'p', APP: 'shop', BOTH: 'p/shop/$(LATER)', LATER: 'x' })
  expect(commandOf(container as never, env)).toEqual(['echo', 'p/shop/$(LATER)', 'x'])
})

it('SYS-7 rejects unsupported sources by name', () => {
  const of = (more: object) => () => environmentOf(pod, { name: 'c', ...more } as never)
  expect(of({ envFrom: [{ secretRef: { name: 's' } }] })).toThrow(ConfigError)
  expect(of({ env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] })).toThrow(/env X/)
  expect(of({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }] })).toThrow(/status.podIP/)
})
