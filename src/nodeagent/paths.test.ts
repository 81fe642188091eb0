import { describe, expect, it } from 'vitest'
import { agentPaths } from './paths.ts'

describe('the agent paths', () => {
  it('throw for a name that is not a file name, and hash volume handles', () => {
    const paths = agentPaths('/root')
    for (const name of ['', '.', '..', 'a/b', '../x', '/etc', 'a\0']) {
      expect(() => paths.csiVolume('u', name)).toThrow(/is not a valid file name/)
      expect(() => paths.pod(name)).toThrow(/is not a valid file name/)
    }
    expect(paths.staging('d', '../../etc')).toMatch(
      /^\/root\/plugins\/kubernetes.io\/csi\/d\/[0-9a-f]{64}\/globalmount$/,
    )
  })
})
