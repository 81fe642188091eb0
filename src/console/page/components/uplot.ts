// uPlot and its styles, as a chunk of their own.
import uPlot from 'uplot'

export default uPlot
