// Bundles uPlot and its styles as a separate chunk.
import uPlot from 'uplot'

export default uPlot
