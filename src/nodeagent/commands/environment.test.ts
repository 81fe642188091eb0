import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConfigError, commandOf, environmentOf, expandVariables } from './environment.ts'
import { serviceEnvironmentOf } from './host-containers.ts'

const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u', labels: { app: 'shop' } } }

describe('the environment of a container', () => {
  it('SYS-7 expands known variables, keeps unknown ones, and unescapes $$', () => {
    const env = { A: '1', B: '$(A)' }
    expect(expandVariables('$(A)-$(B)-$(C)-$$(A)-$A-$', env)).toBe('1-$(A)-$(C)-$(A)-$A-$')
    fc.assert(
      fc.property(fc.string(), (text) => {
        if (!text.includes('$')) expect(expandVariables(text, env)).toBe(text)
        expect(expandVariables(text.replaceAll('$', '$$$$'), env)).toBe(text)
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

  it('SYS-7 names the API server, unless the container defines the variables itself', () => {
    const base = serviceEnvironmentOf('https://[::1]:7443')
    const container = { name: 'c', env: [{ name: 'KUBERNETES_SERVICE_PORT', value: '1' }] }
    expect(base).toEqual({ KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '7443' })
    expect(environmentOf(pod, container as never, base)).toEqual({ ...base, KUBERNETES_SERVICE_PORT: '1' })
  })

  it('SYS-7 names an unsupported source in the error', () => {
    const buildEnvironment = (fields: object) => () => environmentOf(pod, { name: 'c', ...fields } as never)
    expect(buildEnvironment({ envFrom: [{ secretRef: { name: 's' } }] })).toThrow(ConfigError)
    expect(buildEnvironment({ env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] })).toThrow(
      /env X/,
    )
    expect(buildEnvironment({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }] })).toThrow(
      /status.podIP/,
    )
  })
})
