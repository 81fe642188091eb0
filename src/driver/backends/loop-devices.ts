// Computes the size of an image's loop device, and finds the devices that are attached to an image.
import type { LoopDevice, Loops } from '../../host/host.ts'

/** Device sizes are multiples of a page. The reported capacity is exact. */
const DEVICE_BYTES_UNIT = 4_096
export const deviceBytesOf = (capacityBytes: number): number =>
  Math.ceil(capacityBytes / DEVICE_BYTES_UNIT) * DEVICE_BYTES_UNIT

/** Returns all devices of this image, even if the file was deleted. */
export const findLoops = async (loops: Loops, image: string): Promise<LoopDevice[]> =>
  (await loops.list()).filter((loop) => loop.file === image)
export const findDevices = async (loops: Loops, image: string): Promise<string[]> =>
  (await findLoops(loops, image)).map((loop) => loop.device)
