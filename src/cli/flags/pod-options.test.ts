import { describe, expect, it } from 'vitest'
import { parsePodFlags } from './pod-options.ts'

describe('parsePodFlags', () => {
  it('SYS-26 splits --image-command at the first equals sign', () => {
    const imageCommand = ['shop/web=env A=1 sleep 5', 'reg:5000/app:1=true']
    expect(parsePodFlags({ imageCommand }).imageCommands).toEqual([
      { image: 'shop/web', command: 'env A=1 sleep 5' },
      { image: 'reg:5000/app:1', command: 'true' },
    ])
  })

  it.each(['busybox', '=sleep 5', 'busybox=', 'busybox= ', 'busy box=sleep'])(
    'SYS-26 rejects the value %j of --image-command',
    (text) => {
      expect(() => parsePodFlags({ imageCommand: [text] })).toThrow(`--image-command ${JSON.stringify(text)}: expected`)
    },
  )
})
